"""The built-in biped, and the message classes and serializers of rosbags and of rclpy."""

from __future__ import annotations

import array
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest

from benchmarks.shared.bag_messages import BagMessageTypes
from friction_estimator.config import Config
from friction_estimator.io.robot import Robot, load_robot
from friction_estimator.messages.topics import Topic
from friction_estimator.robot.model import RobotModel
from friction_estimator.types import BaseState, ContactPhase, FrictionEstimate
from test.estimates import estimate_from


@pytest.fixture(scope="session")
def robot() -> Robot:
    return load_robot("suralp")


@pytest.fixture(scope="session")
def config(robot: Robot) -> Config:
    return robot.config


@pytest.fixture(scope="session")
def joint_names(robot: Robot) -> tuple[str, ...]:
    return RobotModel(robot.config, robot.urdf_xml).joint_names


class RosbagsTypes(BagMessageTypes):
    """Messages of rosbags."""

    def deserialize(self, raw: bytes, type_name: str) -> Any:
        return self.typestore.deserialize_cdr(raw, type_name)


class RclpyTypes:
    """Messages of rclpy."""

    def make(self, type_name: str, /, **fields: Any) -> Any:
        from friction_estimator.ros.middleware import message_class

        return message_class(type_name)(**fields)

    def floats(self, values: np.ndarray) -> array.array:
        return array.array("d", values.tolist())

    def serialize(self, message: Any) -> bytes:
        from rclpy.serialization import serialize_message

        return serialize_message(message)

    def deserialize(self, raw: bytes, type_name: str) -> Any:
        from rclpy.serialization import deserialize_message

        from friction_estimator.ros.middleware import message_class

        return deserialize_message(raw, message_class(type_name))


Types = RosbagsTypes | RclpyTypes


@pytest.fixture(params=["rosbags", "rclpy"])
def types(request: pytest.FixtureRequest) -> Types:
    if request.param == "rosbags":
        return RosbagsTypes()
    pytest.importorskip("rclpy", reason="ROS is not installed")
    return RclpyTypes()


@pytest.fixture
def decoded(types: Types) -> Callable[[Iterable[tuple[Topic, bytes]]], dict[str, Any]]:
    """Message objects by topic name."""
    return lambda built: {topic.name: types.deserialize(raw, topic.type) for topic, raw in built}


@pytest.fixture
def make_estimate(joint_names: tuple[str, ...]) -> Callable[..., FrictionEstimate]:
    """Estimates with random numbers of a fixed seed; keywords replace fields."""
    n = len(joint_names)

    def make(stamp_ns: int, phase: str = "double_support", **fields: object) -> FrictionEstimate:
        rng = np.random.default_rng(stamp_ns)
        base = BaseState(
            rng.normal(size=3), np.eye(3), rng.normal(size=3), rng.normal(size=3), np.eye(6), 2.0 * np.eye(6)
        )
        arrays = {
            name: rng.normal(size=n)
            for name in (
                "position velocity effort friction sigma model coulomb viscous external_torque external_torque_sigma "
                "nis calibration_torque"
            ).split()
        }
        values: dict[str, object] = {
            **arrays,
            "stamp_ns": stamp_ns,
            "measured": np.ones(n, dtype=bool),
            "disturbed": np.zeros(n, dtype=bool),
            "valid": np.ones(n, dtype=bool),
            "parameters": np.stack((arrays["coulomb"], arrays["viscous"]), axis=1),
            "parameters_sigma": np.abs(rng.normal(size=(n, 2))),
            "model_sigma": np.abs(rng.normal(size=n)),
            "coulomb_sigma": np.abs(rng.normal(size=n)),
            "viscous_sigma": np.abs(rng.normal(size=n)),
            "coulomb_viscous_covariance": np.zeros(n),
            "velocity_range": np.tile([0.1, 1.0], (n, 1)),
            "known": np.ones(n, dtype=bool),
            "phase": ContactPhase(np.array([True, True]), np.zeros(2), phase),
            "base": base,
            **fields,
        }
        return estimate_from(**values)

    return make
