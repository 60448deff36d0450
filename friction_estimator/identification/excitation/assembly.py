"""One trajectory from its parts: rest, Fourier series, slow sweeps, rest; and the torque it takes."""

from __future__ import annotations

import numpy as np

from friction_estimator.errors import ConfigError
from friction_estimator.identification.excitation.fourier_trajectory import FourierTrajectory
from friction_estimator.identification.excitation.motion_limits import MotionLimits
from friction_estimator.identification.excitation.plan import ExcitationOptions
from friction_estimator.identification.excitation.slow_sweeps import slow_sweeps, sweep_duration, sweep_reach
from friction_estimator.identification.rigid_body.fixed_base_model import FixedBaseModel
from friction_estimator.types import FloatArray

Signals = tuple[FloatArray, FloatArray, FloatArray]
"""Position, velocity, acceleration, each (N, n)."""

REST = 0.5
"""Standstill before and after [s]."""
RAMP = 0.5
"""From rest to the velocity of a sweep [s]."""
_RAMP_PEAK = 1.5  # largest acceleration of a ramp over its mean
_SWEEP_SHARE = 0.4  # of the range that a sweep may take; from any place there is more room towards the middle
_SHRINK = 0.95


def assemble(lap: FourierTrajectory, limits: MotionLimits, options: ExcitationOptions) -> tuple[FloatArray, Signals]:
    """Time (N,) and motion of a whole trajectory."""
    start, _, _ = lap.at(np.zeros(1))
    speeds = _sweep_speeds(start[0], limits, options)
    ends = np.cumsum([REST, lap.duration, sweep_duration(len(speeds), options.dwell, RAMP), REST])
    time = np.arange(int(np.ceil(ends[-1] * options.rate)) + 1) / options.rate
    inside = np.clip(time - ends[0], 0.0, lap.duration)
    after = np.clip(time - ends[1], 0.0, ends[2] - ends[1])
    fourier = lap.at(inside)
    sweep = slow_sweeps(start[0], speeds, options.dwell, RAMP, after)
    moving = ((time > ends[0]) & (time < ends[1]))[:, None]
    return time, (
        np.where(moving, fourier[0], sweep[0]),
        np.where(moving, fourier[1], sweep[1]),
        np.where(moving, fourier[2], sweep[2]),
    )


def shrink_to_effort(
    lap: FourierTrajectory, model: FixedBaseModel, limits: MotionLimits, options: ExcitationOptions
) -> tuple[FourierTrajectory, float]:
    """Smaller amplitudes, until the rigid bodies take no more than the efforts of the limits.

    Returns
    -------
    the trajectory, and the factor of its amplitudes

    Raises
    ------
    ConfigError
        When gravity alone takes more.
    """
    factor = 1.0
    while factor > _SHRINK**40:
        smaller = lap.scaled(factor)
        _, motion = assemble(smaller, limits, options)
        excess = np.abs(model.torque(*motion)).max(axis=0) / limits.effort
        if (excess <= 1.0).all():
            return smaller, factor
        factor *= _SHRINK
    worst = int(excess.argmax())
    raise ConfigError(
        f"holding {limits.joint_names[worst]!r} against gravity takes more than the effort that is left to it "
        f"({limits.effort[worst]:.3g}): check masses and effort limits of the URDF"
    )


def _sweep_speeds(start: FloatArray, limits: MotionLimits, options: ExcitationOptions) -> FloatArray:
    """Plateaus (levels, n), towards the middle of the range, slow enough for what room and acceleration there are."""
    reach_of_one = float(sweep_reach(np.ones(1), options.dwell, RAMP)[0])
    ceiling = np.minimum(
        _SWEEP_SHARE * (limits.upper - limits.lower) / reach_of_one, limits.acceleration * RAMP / _RAMP_PEAK
    )
    fastest = np.minimum(max(options.sweep_levels, default=0.0) * limits.velocity, ceiling)
    direction = np.where(start > 0.5 * (limits.lower + limits.upper), -1.0, 1.0)
    shares = np.array(options.sweep_levels) / max(options.sweep_levels, default=1.0)
    return np.asarray(shares[:, None] * direction * fastest)
