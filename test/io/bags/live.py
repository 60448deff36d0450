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
    readers, types = InputReader(estimator.config, estimator.joint_names).by_topic, BagMessageTypes()
    made = list[FrictionEstimate]()
    for topic, _, message in messages:
        if topic in readers:
            made += estimator.add(readers[topic](types.serialize(message)))
    return made + estimator.flush()
