#!/usr/bin/env bash
# Runs a command with ROS and this package in its environment.
set -e
source /opt/ros/jazzy/setup.bash
source /ws/install/setup.bash
exec "$@"
