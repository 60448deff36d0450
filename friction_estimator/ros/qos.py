"""Quality of service of every topic."""

from __future__ import annotations

from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy

SENSOR_INPUT = QoSProfile(reliability=ReliabilityPolicy.BEST_EFFORT, history=HistoryPolicy.KEEP_LAST, depth=2000)
"""Best effort matches any publisher; two seconds of 1 kHz, so that a pause of the process loses nothing."""

SENSOR_OUTPUT = QoSProfile(reliability=ReliabilityPolicy.RELIABLE, history=HistoryPolicy.KEEP_LAST, depth=1000)
"""What our own simulator and player publish with: both reliable and best-effort subscribers match."""

OUTPUT = QoSProfile(reliability=ReliabilityPolicy.RELIABLE, history=HistoryPolicy.KEEP_LAST, depth=10)
"""Results."""

FAST_OUTPUT = QoSProfile(reliability=ReliabilityPolicy.RELIABLE, history=HistoryPolicy.KEEP_LAST, depth=1000)
"""Results at the joint-state rate: a recorder that pauses for a moment still gets them all."""

RECORDER = QoSProfile(reliability=ReliabilityPolicy.RELIABLE, history=HistoryPolicy.KEEP_LAST, depth=5000)
"""Subscriptions of the recorder to topics of our own reliable publishers."""

LATCHED = QoSProfile(
    reliability=ReliabilityPolicy.RELIABLE,
    durability=DurabilityPolicy.TRANSIENT_LOCAL,
    history=HistoryPolicy.KEEP_LAST,
    depth=1,
)
"""robot_description: whoever comes late gets the last one."""
