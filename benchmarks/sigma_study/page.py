"""Prints how often F_c and F_v of truth lie within two standard deviations, as Markdown.

Every recording is fitted with the law `coulomb_viscous`. Where friction has another shape, truth is the law nearest to
it (`benchmarks/sigma_study/shapes.py`).
"""

from __future__ import annotations

import argparse
from itertools import product

import numpy as np

from benchmarks.sigma_study.arm import JOINTS, MOTIONS, OFFSET, PERIOD, model, rigid_torque, sine
from benchmarks.sigma_study.shapes import COULOMB, SHAPES, VISCOUS, Moments, nearest_law, plain
from friction_estimator.identification.inverse_dynamics.method import estimate_inverse_dynamics
from friction_estimator.identification.joint_log import JointLog, Motion
from friction_estimator.identification.recording.zero_phase import to_motion
from friction_estimator.types import FloatArray

NOMINAL = np.column_stack((COULOMB, VISCOUS))
FREQUENCIES, AMPLITUDES, RATES, DURATIONS = (0.3, 0.5, 1.0), (0.4, 0.7), (100.0, 1000.0), (10.0, 30.0)
LATE = (0.0, 0.01)
"""Of the single sines: [Hz], [rad], [Hz], [s], and by how much the torque is late [s]."""
ENCODER, NOISE = 1e-4, 0.2
"""Of the single sines: standard deviations of positions [rad] and torques [N m]."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=6, help="recordings of every motion")
    parser.add_argument("--first-seed", type=int, default=0, help="of the motions and of their noise")
    parser.add_argument("--noise", type=float, default=0.5, help="of the torque, white [N m]")
    arguments = parser.parse_args()
    seeds = range(arguments.first_seed, arguments.first_seed + arguments.seeds)
    print(
        "| friction | F_c within 2 sigma | F_v | sigma of F_c, median | of F_v | blocks of time alone: F_c | F_v |\n"
        + "|---" * 7
        + "|"
    )
    for name in SHAPES:
        print(_shape_row(name, seeds, arguments.noise), flush=True)
    print(
        "\n| one sine, torque late by | within 2 sigma: F_c | F_v | error of F_v, median | largest |\n"
        + "|---" * 5
        + "|"
    )
    for late in LATE:
        print(_late_row(late), flush=True)
    return 0


def _shape_row(name: str, seeds: range, noise: float) -> str:
    """All motions and seeds with friction of one shape."""
    cases = [recording(name, motion, seed, noise) for motion in MOTIONS for seed in seeds]
    error, sigma, sampling = (np.concatenate(part) for part in zip(*(fitted(*case) for case in cases), strict=True))
    inside = [100.0 * np.mean(np.abs(error) <= 2.0 * spread, axis=0) for spread in (sigma, sampling)]
    typical = 100.0 * np.median(sigma / np.tile(NOMINAL, (len(cases), 1)), axis=0)
    return (
        f"| {name} | {inside[0][0]:.0f} % | {inside[0][1]:.0f} % | {typical[0]:.2g} % | {typical[1]:.2g} % "
        f"| {inside[1][0]:.0f} % | {inside[1][1]:.0f} % |"
    )


def _late_row(late: float) -> str:
    """All single sines with torques that are so late [s]."""
    cases = [sine_recording(*how, late) for how in product(FREQUENCIES, AMPLITUDES, RATES, DURATIONS)]
    error, sigma, _ = (np.concatenate(part) for part in zip(*(fitted(*case) for case in cases), strict=True))
    inside = 100.0 * np.mean(np.abs(error) <= 2.0 * sigma, axis=0)
    viscous = 100.0 * np.abs(error[:, 1] / np.tile(VISCOUS, len(cases)))
    return (
        f"| {1e3 * late:.0f} ms | {inside[0]:.0f} % | {inside[1]:.0f} % | {np.median(viscous):.1f} % "
        f"| {viscous.max():.0f} % |"
    )


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


def sine_recording(hz: float, size: float, rate: float, duration: float, late: float) -> tuple[Motion, FloatArray]:
    """Both joints follow one sine; the torque comes late."""
    rng = np.random.default_rng(1)
    q, v, a = states = sine(hz, size, duration, 1.0 / rate)
    effort = rigid_torque(states) + plain(v, Moments(q, q, q)) + OFFSET + NOISE * rng.normal(size=q.shape)
    effort = np.roll(effort, round(late * rate), axis=0)
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
