"""Both sides of the equation for one motion, before and after the filter that both pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from friction_estimator.errors import InputError, choices
from friction_estimator.identification.joint_log import COMMANDED, EXTERNAL
from friction_estimator.identification.linear_problem import LinearProblem
from friction_estimator.identification.recording.motion import Motion, at_motors
from friction_estimator.identification.recording.sampling import BANDS, motion_band
from friction_estimator.identification.recording.zero_phase import (
    FULL_BAND,
    ParallelFilter,
    decimation,
    low_pass,
    make_parallel_filter,
)
from friction_estimator.robot.transmission import Transmission
from friction_estimator.types import BoolArray, FloatArray, IntArray

_TORQUES = (COMMANDED, EXTERNAL)
"""Inputs that are filtered as the motor torque is."""
WORKING_RATE, COARSE_RATE = 50.0, 25.0
"""Samples a period of the cut-off frequency at which columns are computed: the step of sgn(dq) stays sharp; and where
candidates are compared, whose errors are much larger than what is lost."""


@dataclass(frozen=True, slots=True)
class Observation:
    """Torque and regressor columns of one recorded motion, thinned to the working rate.

    :func:`stack` makes the equations of the least-squares problem from them. A motion has n joints and N samples at the
    working rate, of which K are left behind the parallel filter; the bodies have b parameters.

    Where friction is that of motors that move joints together, rows are those of the motors, and so is everything here:
    ``T^T (tau - D chi) = f(T^-1 dq)``, motor by motor. "Joint" then means the motor at its place.
    """

    motion: Motion  # thinned out to the working rate
    filter: ParallelFilter  # the same for both sides of the equation
    # (N, n, b) torque per unit of each body parameter, and (K, n, b) the same behind the parallel filter
    rigid: FloatArray
    smooth: FloatArray
    known: FloatArray  # (N, n) torque of known bodies, less that of known external forces [N m]
    # (N, n) measured torque at the working rate, low-passed: the load that friction depends on at first [N m]
    load: FloatArray
    torque: FloatArray  # (K, n) measured torque behind the parallel filter [N m]
    segment: IntArray  # (K,) unique over all motions
    # (N, n) part of the load that a drive computes from commanded positions; None: the torque was measured
    commanded: FloatArray | None = None
    sampling: float = 0.0  # period of the recording [s]

    def late_part(self, command: bool) -> tuple[FloatArray, float]:
        """The part of the load (N, n) [N m] that is late, and -1 where it was recorded late, or 1 where it acts late.

        Parameters
        ----------
        command : of a drive that gets positions, the command is late; False: its whole torque is
        """
        if self.commanded is None:
            return self.load, -1.0
        return (self.commanded if command else self.load), 1.0


Body = Callable[[Motion], tuple[FloatArray, FloatArray]]
"""Columns (N, n, b) and known torque (N, n) [N m] of a motion: of bodies it is ``known + columns @ chi``."""


def observe(
    motions: Sequence[Motion],
    body: Body,
    motors: Transmission,
    band_hz: float | None = None,
    rate: float = WORKING_RATE,
) -> tuple[Observation, ...]:
    """Compute the columns of the rigid body, and filter the measured torque, of every motion.

    Parameters
    ----------
    motions : of the joints (n)
    motors : (n) motors of the rows; one for each joint where nothing is coupled
    band_hz : up to where both sides are compared, see :func:`comparison_limits`
    rate : samples a period of the cut-off frequency at which columns are computed

    Raises
    ------
    InputError
        When a motion has no torque, or other joints than the first one.
    """
    observations, first_segment = [], 0
    for motion, cutoff_hz in zip(motions, comparison_limits(motions, band_hz), strict=True):
        _check(motion, motions[0])
        thin = _thinned(motion, cutoff_hz, rate)
        design = make_parallel_filter(thin, cutoff_hz)
        rigid, known = body(thin)
        thin = at_motors(thin, motors)
        segment = thin.segment[design.kept]
        _, segment = np.unique(segment, return_inverse=True)
        load = _low_passed(_effort(thin), design.stretches, thin.period, cutoff_hz)
        segment = segment.reshape(-1) + first_segment
        rigid, known = motors.torque(rigid.swapaxes(1, 2)).swapaxes(1, 2), motors.torque(known)
        commanded, external = (
            _low_passed(thin.inputs[kind], design.stretches, thin.period, cutoff_hz) if kind in thin.inputs else None
            for kind in (COMMANDED, EXTERNAL)
        )
        known = known if external is None else known - external
        one = Observation(
            thin, design, rigid, design.apply(rigid), known, load, load[design.kept], segment, commanded, motion.period
        )
        observations.append(one)
        first_segment = int(segment.max()) + 1
    return tuple(observations)


def stack(
    observations: Sequence[Observation],
    columns: Sequence[FloatArray],
    sides: Sequence[FloatArray],
    usable: Sequence[BoolArray],
    names: Sequence[str],
    units: Sequence[str],
    nonnegative: BoolArray,
) -> LinearProblem:
    """Linear problem with the rows of all motions, instant by instant, joint by joint (Hamon et al. 2010, eqs. 36-43).

    Parameters
    ----------
    columns : filtered torque per unit of every parameter, (K, n, p) for every motion
    sides : filtered torque to be explained, (K, n) for every motion [N m]
    usable : (K, n) False where the row is left out
    names, units, nonnegative : (p)
    """
    joints = len(observations[0].motion.joint_names)
    keep = np.concatenate([mask.ravel() for mask in usable])
    segment = np.concatenate([observation.segment for observation in observations])
    return LinearProblem(
        names=tuple(names),
        units=tuple(units),
        W=np.concatenate([block.reshape(-1, len(names)) for block in columns])[keep],
        y=np.concatenate([side.ravel() for side in sides])[keep],
        joint=np.tile(np.arange(joints), segment.size)[keep],
        segment=np.repeat(segment, joints)[keep],
        nonnegative=nonnegative,
        instant=np.repeat(np.arange(segment.size), joints)[keep],
        recording=np.repeat(np.arange(len(observations)), [mask.size for mask in usable])[keep],
    )


def thinning(period: float, cutoff_hz: float, rate: float) -> int:
    """Number of samples of a recording from one row to the next; ``rate`` as of :func:`observe`."""
    step = max(int(1.0 / (rate * cutoff_hz * period)), 1)
    return step * decimation(step * period, cutoff_hz)


def _thinned(motion: Motion, cutoff_hz: float, rate: float) -> Motion:
    """A motion recorded much faster than it moves, at the working rate: its torque behind a low-pass."""
    step = int(1.0 / (rate * cutoff_hz * motion.period))
    if step < 2:
        return motion
    stretches = motion.stretches
    kept = np.concatenate([np.arange(start, stop, step) for start, stop in stretches])

    def smoothed(torque: FloatArray) -> FloatArray:
        return _low_passed(torque, stretches, motion.period, FULL_BAND * 0.5 / (step * motion.period))

    return replace(
        motion,
        period=motion.period * step,
        time=motion.time[kept],
        position=motion.position[kept],
        velocity=motion.velocity[kept],
        acceleration=motion.acceleration[kept],
        effort=smoothed(_effort(motion))[kept],
        inputs={kind: (smoothed(one) if kind in _TORQUES else one)[kept] for kind, one in motion.inputs.items()},
        segment=motion.segment[kept],
    )


def _low_passed(
    signal: FloatArray, stretches: Sequence[tuple[int, int]], period: float, cutoff_hz: float
) -> FloatArray:
    smooth = signal.copy()
    for start, stop in stretches:
        if stop - start > 1:
            smooth[start:stop] = low_pass(signal[start:stop], period, cutoff_hz)
    return smooth


def _effort(motion: Motion) -> FloatArray:
    if motion.effort is None:
        raise InputError(f"{motion.name}: inverse dynamics needs the motor torque, 'effort/<joint>' of every joint")
    return motion.effort


def _check(motion: Motion, first: Motion) -> None:
    absent = [
        name for name, torque in zip(motion.joint_names, _effort(motion).T, strict=True) if np.isnan(torque).any()
    ]
    if absent:
        raise InputError(
            f"{motion.name}: the torque of {choices(absent)} was not recorded; inverse dynamics needs 'effort/<joint>' "
            "of every joint that moves"
        )
    if not _effort(motion).any():
        raise InputError(f"{motion.name}: the torque of every joint is zero in all samples: was 'effort' recorded?")
    if motion.joint_names != first.joint_names:
        raise InputError(
            f"{motion.name} has the joints {', '.join(motion.joint_names)}, {first.name} has "
            f"{', '.join(first.joint_names)}: select the same joints of every experiment"
        )


def comparison_limits(motions: Sequence[Motion], wanted: float | None = None) -> list[float]:
    """Cut-off of the filter of both sides [Hz], one for all motions as far as their rates allow.

    Parameters
    ----------
    wanted : None: as the recordings were treated, else some bands of the fastest motion
    """

    def own(motion: Motion) -> float:
        if not np.isnan(motion.parallel_hz):
            return motion.parallel_hz
        bands = [motion_band(motion.time, column) for column in motion.position.T if np.ptp(column) > 0.0]
        return float(BANDS * max(bands, default=1.0 / motion.period))

    band = wanted or max(map(own, motions))
    return [min(band, FULL_BAND * 0.5 / motion.period) for motion in motions]
