"""Collisions of a walking robot, from the external torque of its joints and thresholds of normal walking."""
