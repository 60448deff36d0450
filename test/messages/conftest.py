"""The built-in biped and the message classes of both worlds."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from friction_estimator.bags.message_types import BagMessageTypes
from friction_estimator.core.config import Config
from friction_estimator.core.robot_model import RobotModel
from friction_estimator.core.types import BaseState, ContactPhase, FrictionEstimate
from friction_estimator.files.robot import Robot, load_robot
from friction_estimator.messages.types import MessageTypes


@pytest.fixture(scope="session")
def robot() -> Robot:
    return load_robot("suralp")


@pytest.fixture(scope="session")
def config(robot: Robot) -> Config:
    return robot.config


@pytest.fixture(scope="session")
def joint_names(robot: Robot) -> tuple[str, ...]:
    return RobotModel(robot.config, robot.urdf_xml).joint_names


@pytest.fixture(params=["rosbags", "rclpy"])
def types(request: pytest.FixtureRequest) -> MessageTypes:
    if request.param == "rosbags":
        return BagMessageTypes()
    pytest.importorskip("sensor_msgs", reason="ROS is not installed")
    from friction_estimator.ros.message_types import RclpyMessageTypes

    return RclpyMessageTypes()


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
                "consistency calibration_torque"
            ).split()
        }
        values: dict[str, object] = {
            **arrays,
            "stamp_ns": stamp_ns,
            "measured": np.ones(n, dtype=bool),
            "disturbed": np.zeros(n, dtype=bool),
            "parameters": np.stack((arrays["coulomb"], arrays["viscous"]), axis=1),
            "parameters_sigma": np.abs(rng.normal(size=(n, 2))),
            "model_sigma": np.abs(rng.normal(size=n)),
            "coulomb_sigma": np.abs(rng.normal(size=n)),
            "viscous_sigma": np.abs(rng.normal(size=n)),
            "phase": ContactPhase(np.array([True, True]), np.zeros(2), phase),
            "base": base,
            **fields,
        }
        return FrictionEstimate(**values)

    return make
