"""The joint controllers that friction disturbs: the printed gains of Hashlamon & Erbatur 2014, eq. 68, and ours."""

from __future__ import annotations

from friction_estimator.io.robot import Robot
from friction_estimator.simulation.biped import Biped
from friction_estimator.simulation.controller import ControllerGains

PRINTED_STIFFNESS = (6e3, 2e3, 2e3, 3e3, 3e3, 6e3)
"""k_p from hip yaw to ankle roll [N m/rad]."""

DAMPED, PRINTED, OURS = "printed k_p, k_d = 5", "printed, k_d = 1", "ours"
CONTROLLERS = (PRINTED, DAMPED, OURS)


def controller_gains(robot: Robot, name: str) -> ControllerGains:
    """Gains of one of :data:`CONTROLLERS`; the feed-forward torque of the plan stays in all of them.

    Without it, the printed stiffness lets the pelvis sink and roll by several hundredths of a radian under the weight,
    and the built-in walk falls after 3 s whatever the damping.
    """
    if name == OURS:
        return ControllerGains()
    biped = Biped(robot.config, robot.urdf_xml)
    unit = biped.mass * biped.gravity * biped.legs[0].length
    damping = 1.0 if name == PRINTED else 5.0
    return ControllerGains(
        leg=tuple(stiffness / unit for stiffness in PRINTED_STIFFNESS),
        damping_time=tuple(damping / stiffness for stiffness in PRINTED_STIFFNESS),
        tilt=0.0,
    )
