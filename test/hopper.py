"""The smallest robot with trunk, IMU and foot: two joints, which sway the trunk over a foot that rests."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from friction_estimator.config import Config, config_from_parameters
from friction_estimator.types import ImuSample, JointSample, WrenchSample
from test.one_leg import OneLegInstant, one_leg

PERIOD_NS = 4_000_000
_PERIOD = 2.0
"""Both joints move at 0.5 Hz, so that the motion repeats itself after this time [s]."""


def _link(name: str, mass: float, height: float) -> str:
    return (
        f'<link name="{name}"><inertial><origin xyz="0.02 0.01 {height}"/><mass value="{mass}"/>'
        '<inertia ixx="0.1" iyy="0.1" izz="0.05" ixy="0" ixz="0" iyz="0"/></inertial></link>'
    )


def _joint(name: str, kind: str, parent: str, child: str, height: float, axis: str) -> str:
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="0 0 {height}"/><axis xyz="{axis}"/>'
        '<limit lower="-1" upper="1" effort="100" velocity="10"/></joint>'
    )


HOPPER = "".join(
    (
        '<robot name="hopper">',
        _link("trunk", 10.0, 0.2),
        '<link name="imu_link"/>',
        _link("thigh", 2.0, -0.2),
        _link("shank", 1.0, -0.2),
        '<link name="l_sole"/>',
        _joint("imu_mount", "fixed", "trunk", "imu_link", 0.1, "0 0 1"),
        _joint("hip", "revolute", "trunk", "thigh", 0.0, "0 1 0"),
        _joint("knee", "revolute", "thigh", "shank", -0.4, "1 0 0"),
        _joint("ankle", "fixed", "shank", "l_sole", -0.4, "0 0 1"),
        "</robot>",
    )
)


def hopper_config(**changes: object) -> Config:
    """Configuration; keywords with ``__`` for dots change parameters."""
    parameters: dict[str, object] = {"feet.names": ["foot"], "feet.foot.frame": "l_sole"}
    return config_from_parameters(parameters | {key.replace("__", "."): value for key, value in changes.items()})


@cache
def _cycle() -> tuple[OneLegInstant, ...]:
    return tuple(one_leg(HOPPER, _PERIOD, 1e-9 * PERIOD_NS))


@dataclass(frozen=True)
class HopperInstant:
    """Samples of one instant, and the true friction (2,) [N m]."""

    joints: JointSample
    imu: ImuSample
    wrench: WrenchSample
    friction: np.ndarray


def hopping(start: int, count: int) -> list[HopperInstant]:
    """Instants from number ``start`` on."""
    cycle, instants = _cycle(), []
    for k in range(start, start + count):
        exact, stamp = cycle[k % len(cycle)], k * PERIOD_NS
        joints, imu, (wrench, _) = exact.samples
        samples = [replace(sample, stamp_ns=stamp) for sample in (joints, imu, wrench)]
        instants.append(HopperInstant(*samples, exact.friction))
    return instants
