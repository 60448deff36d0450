"""Dead zone: samples too slow for the sign of their velocity to mean anything, given or found from the data."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.ndimage import maximum_filter1d

from friction_estimator.identification.inverse_dynamics.estimation import (
    TorqueModel,
    estimate,
    reference_speeds,
)
from friction_estimator.identification.inverse_dynamics.friction_columns import FrictionColumns
from friction_estimator.identification.inverse_dynamics.live_law import estimated_friction
from friction_estimator.identification.inverse_dynamics.observation import Observation
from friction_estimator.identification.inverse_dynamics.options import InverseDynamicsOptions
from friction_estimator.types import BoolArray, FloatArray

_FRACTIONS = np.array([0.0, 0.0025, 0.005, 0.01, 0.02, 0.03, 0.05])
"""Borders of the bins of speed that are tested, in reference speeds of the joint."""
_SURE = (0.05, 0.3)
"""Slow, but without doubt in motion, in reference speeds: a line through its friction meets zero speed at F_c."""
FIRST = 0.005
"""Dead zone that is never left, in reference speeds: a joint that stands may hold any friction up to breaking away."""
_RESISTS = 0.5
"""A bin is part of the dead zone when its friction opposes the motion by less than this share of F_c."""
_ENOUGH = 10


def usable_rows(
    observations: Sequence[Observation], friction: FrictionColumns, dead_zone: FloatArray
) -> list[BoolArray]:
    """Rows (K, n) of every motion whose joint is moved by sites that all were fast enough while the row was sampled.

    Parameters
    ----------
    dead_zone : (k,) of the sites [rad/s]
    """
    masks = []
    for observation in observations:
        slow = np.abs(friction.speeds(observation.motion.velocity)) <= dead_zone
        spread = np.zeros_like(slow)
        for start, stop in observation.filter.stretches:
            window = observation.filter.decimate + 1 - observation.filter.decimate % 2
            spread[start:stop] = maximum_filter1d(slow[start:stop], window, axis=0, mode="nearest")
        touched = spread[observation.filter.kept].astype(float) @ (friction.directions != 0.0)
        masks.append(touched == 0.0)
    return masks


def choose_dead_zone(speed: FloatArray, resistance: FloatArray, reference: FloatArray) -> FloatArray:
    """Where friction no longer opposes the motion by half of the Coulomb friction that slow, sure motion shows.

    A joint that slides resists with its Coulomb friction; one that sticks, or whose velocity is noise, resists as often
    as it drives. Residuals would not do as a criterion: they are also large where the law is wrong, and leaving out
    what a law does not explain makes it look right.

    Parameters
    ----------
    speed : (r, k) absolute velocity of every joint [rad/s]
    resistance : (r, k) measured friction torque times the sign of the velocity [N m]
    reference : (k,) of :func:`reference_speeds`

    Returns
    -------
    dead_zone : (k,) [rad/s]
    """
    dead_zone = FIRST * reference
    for joint in range(reference.size):
        share = speed[:, joint] / max(reference[joint], np.finfo(float).tiny)
        sure = (share > _SURE[0]) & (share <= _SURE[1])
        slope = np.column_stack((share[sure], np.ones(sure.sum())))
        line = np.linalg.lstsq(slope, resistance[sure, joint], rcond=None)[0] if sure.sum() >= _ENOUGH else np.zeros(2)
        for low, high in zip(_FRACTIONS[:-1], _FRACTIONS[1:], strict=True):
            inside = (share > low) & (share <= high)
            if inside.sum() >= _ENOUGH and np.median(resistance[inside, joint]) < _RESISTS * line[1]:
                dead_zone[joint] = max(dead_zone[joint], high * reference[joint])
    return dead_zone


def moving_rows(
    model: TorqueModel, observations: Sequence[Observation], options: InverseDynamicsOptions
) -> tuple[list[BoolArray], str]:
    """Rows outside of the dead zone, and what it is."""
    reference = reference_speeds(observations, model.friction)
    if options.dead_zone is not None:
        zone = np.full(reference.size, options.dead_zone)
        why = "as given"
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
    measured = np.column_stack([estimated_friction(solution, joint, False).measured for joint in joints])
    velocity = np.concatenate([one.motion.velocity[one.filter.kept] for one in observations])
    zone[: len(joints)] = choose_dead_zone(np.abs(velocity), np.sign(velocity) * measured, reference[: len(joints)])
    return zone
