"""Does the sigma of `inverse_dynamics` hold when friction has another shape than the law?

    python -m benchmarks.sigma_coverage [--seeds 6]

Prints how often F_c and F_v of truth lie within two standard deviations, as Markdown, and sigma relative to the true
values of the two joints (5 and 2 N m, 3 and 1 N m s/rad). Every row has 30 recordings of an arm with five kinds of
motion and 0.5 N m of noise. In the second table both joints follow one sine (0.3 to 1 Hz, 0.4 and 0.7 rad, 10 and 30 s
at 100 and 1000 Hz). Every recording is fitted with the law `coulomb_viscous`. Where friction has another shape, truth
is the law nearest to it. Takes three minutes; ``--seeds 1`` takes one minute.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import product

import numpy as np

from benchmarks.shared.command import command, count, make_parser
from benchmarks.shared.pages import header, row
from benchmarks.sigma_coverage.arm import (
    COULOMB,
    JOINTS,
    MOTIONS,
    OFFSET,
    PERIOD,
    SHAPES,
    VISCOUS,
    Moments,
    model,
    nearest_law,
    plain,
    rigid_torque,
    sine,
)
from friction_estimator.identification.inverse_dynamics.method import estimate_inverse_dynamics
from friction_estimator.identification.joint_log import JointLog
from friction_estimator.identification.recording.motion import Motion, to_motion
from friction_estimator.types import FloatArray

NOMINAL = np.column_stack((COULOMB, VISCOUS))
FREQUENCIES, AMPLITUDES, RATES, DURATIONS = (0.3, 0.5, 1.0), (0.4, 0.7), (100.0, 1000.0), (10.0, 30.0)
DELAYS = (0.0, 0.01)
"""Of the single sines: [Hz], [rad], [Hz], [s], and delay of the torque [s]."""
ENCODER, NOISE = 1e-4, 0.2
"""Of the single sines: standard deviations of positions [rad] and torques [N m]."""

_SHAPE_HEADING = (
    "friction", "F_c within 2 sigma", "F_v", "sigma of F_c, median", "of F_v", "blocks of time alone: F_c", "F_v",
)  # fmt: skip
_DELAY_HEADING = ("one sine, torque late by", "within 2 sigma: F_c", "F_v", "error of F_v, median", "largest")


@command
def main(arguments: Sequence[str] | None = None) -> None:
    parser = make_parser("sigma_coverage", __doc__)
    parser.add_argument("--seeds", type=count, default=6, help="recordings of every motion")
    parser.add_argument("--first-seed", type=int, default=0, help="of the motions and of their noise")
    parser.add_argument("--noise", type=float, default=0.5, help="standard deviation of the torque, white [N m]")
    options = parser.parse_args(arguments)
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    print(header(_SHAPE_HEADING))
    for name in SHAPES:
        print(row(_shape_cells(name, seeds, options.noise)), flush=True)
    print("\n" + header(_DELAY_HEADING))
    for delay in DELAYS:
        print(row(_delay_cells(delay)), flush=True)


def _shape_cells(name: str, seeds: range, noise: float) -> list[str]:
    """All motions and seeds with friction of one shape."""
    cases = [recording(name, motion, seed, noise) for motion in MOTIONS for seed in seeds]
    error, sigma, sampling = (np.concatenate(part) for part in zip(*(fitted(*case) for case in cases), strict=True))
    inside = [100.0 * np.mean(np.abs(error) <= 2.0 * spread, axis=0) for spread in (sigma, sampling)]
    typical = 100.0 * np.median(sigma / np.tile(NOMINAL, (len(cases), 1)), axis=0)
    return [
        name,
        *(f"{share:.0f} %" for share in inside[0]),
        *(f"{size:.2g} %" for size in typical),
        *(f"{share:.0f} %" for share in inside[1]),
    ]


def _delay_cells(delay: float) -> list[str]:
    """All single sines with torques that are delayed by this time [s]."""
    cases = [sine_recording(*how, delay) for how in product(FREQUENCIES, AMPLITUDES, RATES, DURATIONS)]
    error, sigma, _ = (np.concatenate(part) for part in zip(*(fitted(*case) for case in cases), strict=True))
    inside = 100.0 * np.mean(np.abs(error) <= 2.0 * sigma, axis=0)
    viscous = 100.0 * np.abs(error[:, 1] / np.tile(VISCOUS, len(cases)))
    shares = (f"{share:.0f} %" for share in inside)
    return [f"{1e3 * delay:.0f} ms", *shares, f"{np.median(viscous):.1f} %", f"{viscous.max():.0f} %"]


def recording(shape: str, motion: str, seed: int, noise: float) -> tuple[Motion, FloatArray]:
    """One recording, and F_c and F_v (2, 2) of both joints."""
    states = MOTIONS[motion](seed)
    q, v, a = states
    load = rigid_torque(states)
    moments = Moments(q, load, np.linspace(0.0, 1.0, len(q))[:, None])
    effort = load + SHAPES[shape](v, moments) + OFFSET
    effort += noise * np.random.default_rng(seed + 1000).normal(size=q.shape)
    time = np.arange(len(q)) * PERIOD
    made = Motion(motion, JOINTS, PERIOD, time, q, v, a, effort, {}, time.astype(np.intp), None, "", ())
    return made, nearest_law(SHAPES[shape], v, moments)


def sine_recording(hz: float, size: float, rate: float, duration: float, delay: float) -> tuple[Motion, FloatArray]:
    """Both joints follow one sine; the torque is delayed."""
    rng = np.random.default_rng(1)
    q, v, a = states = sine(hz, size, duration, 1.0 / rate)
    effort = rigid_torque(states) + plain(v, Moments(q, q, q)) + OFFSET + NOISE * rng.normal(size=q.shape)
    effort = np.roll(effort, round(delay * rate), axis=0)
    time = np.arange(len(q)) / rate
    log = JointLog("sine", JOINTS, time, q + ENCODER * rng.normal(size=q.shape), None, effort)
    return to_motion(log), NOMINAL


def fitted(motion: Motion, truth: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Error, sigma, and sigma by blocks of time alone, each (2, 2): joints by F_c and F_v."""
    solution, _ = estimate_inverse_dynamics([motion], model())
    places = [[solution.model.names.index(f"{j}/{p}") for p in ("coulomb", "viscous")] for j in JOINTS]
    sampling = np.zeros(solution.values.size)
    sampling[solution.kept] = np.sqrt(np.diagonal(solution.fit.sampling_covariance))
    sigma = np.sqrt(np.diagonal(solution.covariance))
    return solution.values[places] - truth, sigma[places], sampling[places]


if __name__ == "__main__":
    sys.exit(main())
