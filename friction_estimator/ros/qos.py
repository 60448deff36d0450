"""Quality of service of every topic."""

from __future__ import annotations

from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy

_SENSOR_DEPTH = 2000
"""Two seconds of 1 kHz, so that a pause of the process loses nothing."""

SENSOR_INPUT = QoSProfile(
    reliability=ReliabilityPolicy.BEST_EFFORT, history=HistoryPolicy.KEEP_LAST, depth=_SENSOR_DEPTH
)
"""Best effort matches any publisher."""

RELIABLE_INPUT = QoSProfile(
    reliability=ReliabilityPolicy.RELIABLE, history=HistoryPolicy.KEEP_LAST, depth=_SENSOR_DEPTH
)
"""For publishers that are known to be reliable: samples that the transport dropped are sent again."""

SENSOR_OUTPUT = QoSProfile(reliability=ReliabilityPolicy.RELIABLE, history=HistoryPolicy.KEEP_LAST, depth=_SENSOR_DEPTH)
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
