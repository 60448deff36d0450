"""Which rows are used: those of joints that move, beyond a dead zone that is told or found."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from friction_estimator.identification.inverse_dynamics.dead_zone import (
    FIRST,
    choose_dead_zone,
    reference_speeds,
    usable_rows,
)
from friction_estimator.identification.inverse_dynamics.estimation import estimate
from friction_estimator.identification.inverse_dynamics.live_law import joint_friction
from friction_estimator.identification.inverse_dynamics.observation import Observation
from friction_estimator.identification.inverse_dynamics.options import InverseDynamicsOptions
from friction_estimator.identification.inverse_dynamics.torque_model import TorqueModel
from friction_estimator.types import BoolArray, FloatArray


def moving_rows(
    model: TorqueModel, observations: Sequence[Observation], options: InverseDynamicsOptions
) -> tuple[list[BoolArray], str]:
    """Rows outside of the dead zone, and what it is."""
    reference = reference_speeds(observations, model.friction)
    if options.dead_zone is not None:
        zone = np.full(reference.size, options.dead_zone)
        why = "as told"
    else:
        zone = _chosen_dead_zone(model, observations, options, reference)
        why = "where friction does not oppose the motion with half of F_c, or the joint stands"
    usable = usable_rows(observations, model.friction, zone)
    share = 1.0 - np.mean(np.concatenate(usable), axis=0)
    each = ", ".join(
        f"{name} {speed:.3g} ({100 * left_out:.0f} %)"
        for name, speed, left_out in zip(observations[0].motion.joint_names, zone, share, strict=False)
    )
    return usable, f"slow samples are left out, {why}: below, in rad/s (and share), {each}"


def _chosen_dead_zone(
    model: TorqueModel, observations: Sequence[Observation], options: InverseDynamicsOptions, reference: FloatArray
) -> FloatArray:
    """Fit without standing joints, then look which slow samples still show resistance; motors keep the first zone."""
    zone = FIRST * reference
    solution = estimate(model, observations, usable_rows(observations, model.friction, zone), options.solver)
    joints = range(len(observations[0].motion.joint_names))
    measured = np.column_stack([joint_friction(solution, joint, False).measured for joint in joints])
    velocity = np.concatenate([one.motion.velocity[one.filter.kept] for one in observations])
    zone[: len(joints)] = choose_dead_zone(np.abs(velocity), np.sign(velocity) * measured, reference[: len(joints)])
    return zone
