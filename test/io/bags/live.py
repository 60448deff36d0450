"""What a node does with the messages of a bag."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchmarks.shared.bag_messages import BagMessageTypes
from friction_estimator.estimation.estimator import Estimator
from friction_estimator.messages.sensors import InputReader
from friction_estimator.types import FrictionEstimate


def by_hand(estimator: Estimator, messages: Sequence[tuple[str, int, Any]]) -> list[FrictionEstimate]:
    """Read, estimate."""
    read, types = InputReader(estimator.config, estimator.joint_names), BagMessageTypes()
    add = {
        "joint_states": lambda raw: estimator.add_joints(read.joint_state(raw)),
        "joint_commands": lambda raw: estimator.add_command(read.command(raw)),
        "imu/data": lambda raw: estimator.add_imu(read.imu(raw)),
        "l_foot/wrench": lambda raw: estimator.add_wrench(read.wrench(0, raw)),
        "r_foot/wrench": lambda raw: estimator.add_wrench(read.wrench(1, raw)),
    }
    made = [one for topic, _, message in messages if topic in add for one in add[topic](types.serialize(message))]
    return made + estimator.flush()
