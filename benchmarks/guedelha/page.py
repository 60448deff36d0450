"""The page docs/results/guedelha.md."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.accuracy.markdown import number, row_of, table
from benchmarks.guedelha import figures
from benchmarks.guedelha.recordings import HIGHEST_PWM, TORQUE_NOISE, TRIANGLES, Study, make_study
from benchmarks.guedelha.robots import DEGREE, Mechanism, leg, torso
from benchmarks.guedelha.stiction import STEP
from friction_estimator.config.robot import uncoupled
from friction_estimator.identification.motor.method import MotorOptions, identify_motor
from friction_estimator.identification.result import Identification
from friction_estimator.types import FloatArray

LAWS = {
    "Coulomb and viscous, eq. 21 as printed": {"law": "coulomb_viscous", "offset": False},
    "Coulomb and viscous, with an offset": {"law": "coulomb_viscous"},
    "Coulomb and viscous of each direction": {"law": "asymmetric"},
    "Stribeck, eqs. 29-31, no offset as printed": {"offset": False},
    "Stribeck, with an offset": {},
    "Stribeck, zero slope at 0+": {"zero_slope": "positive"},
    "Stribeck, its velocity searched": {"stribeck_velocity": None},
}
DEFAULT = "Stribeck, with an offset"
FIGURE_10 = ("Coulomb and viscous, with an offset", DEFAULT)
KNEE = "r_knee"

INTRODUCTION = """\
# Coupled motors: what went in, what comes out

Guedelha et al. 2017, the method `motor`. Made by `{command}`.

The limbs are simulated, not the model evaluated: rigid bodies of pinocchio, motors behind the coupling matrix with
their reflected inertia, dry friction that holds a motor at rest while it can (projected Gauss-Seidel, {step:g} ms),
weight, and a hand that is a spring and a damper. First the hand leads the joints at 0 to 30 deg/s with PWM = 0,
{duration:g} s; then each motor in turn goes through {triangles} triangles of +-{pwm:g} % PWM against the hand,
{duration:g} s together. Recorded are joint positions (16 bit) and joint torques with {noise:g} N m of noise, at 100 Hz.
The reflected inertia is given, as in the paper. tau_0 acts with PWM = 0, too.
"""

LEG = """\
## A leg with the values of Table 1

Table 1 has no K_c. We take the one that its zero-slope constraint gives with a Stribeck velocity of 1 deg/s,
`K_c = sigma_s+ - K_v (1 deg/s)`, positive for all six joints. Drive gains and tau_0 are ours. Units as in the paper.
"""

TORSO = """\
## Three motors in differential configuration

Yaw, roll and pitch of the torso with the coupling matrix of the iCub ([source](../design/equations.md)); the friction
of figure 10 (K_c 0.85 N m, K_v 0.31 N m s/deg, sigma_s+ 1.27 N m, sigma_s- 1.95 N m) times 1, 0.8 and 1.4.
"""

JOINT_WISE = """\
### Motor by motor or joint by joint

The same recording and law, once with the coupling and once as if every joint had a motor of its own (section 3.4.2).
Friction of a joint then depends on which motors move and where to, not on its own velocity.

![Friction of the torso joint by joint and motor by motor](images/guedelha_coupling.png)

Top: joints, bottom: motors; lines are the fitted law.
"""

HYSTERESIS = """\
### PWM to torque

![Torque over PWM of the three motors](images/guedelha_hysteresis.png)

*Figure 11.* Where the PWM turns, the motor sticks: the torque behind the gearbox stays until the PWM has moved by
`(sigma_s+ + sigma_s-) / K_pwm`, less what friction is below its static value when the motor stops. The line is eq. 32:
what the drive gives without friction.
"""


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Writes docs/results/guedelha.md and its figures.")
    parser.add_argument("--duration", type=float, default=60.0, help="of each of the two recordings [s]")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--runs", type=int, default=6, help="further recordings of the torso, to judge the sigmas by")
    parser.add_argument("--docs", type=Path, default=Path(__file__).resolve().parents[2] / "docs" / "results")
    options = parser.parse_args(arguments)
    studies = [make_study(mechanism, options.duration, options.seed) for mechanism in (leg(), torso())]
    command = (
        f"python benchmarks/guedelha_coupled.py --duration {options.duration:g} --seed {options.seed} "
        f"--runs {options.runs}"
    )
    seeds = range(options.seed + 1, options.seed + 1 + options.runs)
    consistency = _consistency(torso(), options.duration, seeds) if seeds else ""
    text = "\n".join(_page(studies[0], studies[1], command, options.duration, options.docs / "images", consistency))
    (options.docs / "guedelha.md").write_text(text.rstrip() + "\n", encoding="utf-8")
    return 0


def _page(
    leg_study: Study, torso_study: Study, command: str, duration: float, images: Path, consistency: str
) -> Iterator[str]:
    yield INTRODUCTION.format(
        command=command,
        step=1e3 * STEP,
        duration=duration,
        noise=TORQUE_NOISE,
        triangles=TRIANGLES,
        pwm=HIGHEST_PWM,
    )
    leg_found = {name: identify(leg_study, **changes) for name, changes in LAWS.items()}
    yield LEG
    yield from _came_out(leg_study.mechanism, leg_found[DEFAULT])
    knee = leg_study.mechanism.friction[list(leg_study.mechanism.coupling.motor_names).index(KNEE)]
    figures.draw_laws({name: leg_found[name] for name in FIGURE_10}, knee, KNEE, images / "guedelha_friction.png")
    yield "![Friction of the knee over velocity](images/guedelha_friction.png)\n"
    yield "*Figure 10.* Right: near standstill. Grey samples are stick phases and their margins, left out of the fit.\n"
    yield from _laws(leg_study.mechanism, leg_found)
    yield TORSO
    torso_found = {name: identify(torso_study, **changes) for name, changes in LAWS.items()}
    yield from _came_out(torso_study.mechanism, torso_found[DEFAULT])
    yield consistency
    yield from _laws(torso_study.mechanism, torso_found)
    joints = replace(torso_study.mechanism, coupling=uncoupled(torso_study.mechanism.coupling.joint_names))
    alone = identify(replace(torso_study, mechanism=replace(joints, inertia=np.zeros(3))), driven=False)
    yield JOINT_WISE
    figures.draw_coupling(torso_found[DEFAULT], alone, images / "guedelha_coupling.png")
    yield from _scores(alone, torso_found[DEFAULT])
    yield HYSTERESIS
    figures.draw_hysteresis(torso_study, torso_found[DEFAULT], images / "guedelha_hysteresis.png")
    yield from _widths(torso_study)


def identify(study: Study, driven: bool = True, **changes: Any) -> Identification:
    """The method on the recordings of one limb, inertia given."""
    known = dict(zip(study.mechanism.coupling.motor_names, study.mechanism.inertia.tolist(), strict=True))
    options = replace(MotorOptions(inertia=known), **changes)
    return identify_motor([study.free], [study.driven] if driven else [], study.mechanism.coupling, options)


def _truth(mechanism: Mechanism) -> dict[str, float]:
    names = ("coulomb", "viscous", "static_positive", "static_negative")
    truth: dict[str, float] = {}
    for k, motor in enumerate(mechanism.coupling.motor_names):
        truth |= {f"{motor}/{name}": float(mechanism.friction[k, i]) for i, name in enumerate(names)}
        truth |= {f"{motor}/drive_gain": mechanism.gain[k], f"{motor}/drive_offset": mechanism.offset[k]}
    return truth


COLUMNS = {
    "static_positive": ("sigma_s+ [N m]", 1.0, 3),
    "static_negative": ("sigma_s- [N m]", 1.0, 3),
    "viscous": ("K_v [N m s/deg]", DEGREE, 4),
    "coulomb": ("K_c [N m]", 1.0, 3),
    "drive_gain": ("K_pwm [N m/%]", 1.0, 4),
    "drive_offset": ("tau_0 [N m]", 1.0, 3),
}


def _came_out(mechanism: Mechanism, found: Identification) -> Iterator[str]:
    """What went in -> what came out +- one sigma, and how the errors compare with it."""
    truth, table_ = _truth(mechanism), found.parameters
    rows = []
    for motor in mechanism.coupling.motor_names:
        cells = [motor]
        for name, (_, scale, digits) in COLUMNS.items():
            k = table_.names.index(f"{motor}/{name}")
            went_in = number(scale * truth[table_.names[k]], digits - 1)
            came_out, sigma = (number(scale * value[k], digits) for value in (table_.values, table_.sigma))
            cells.append(f"{went_in} → {came_out} ± {sigma}")
        rows.append(cells)
    yield from table(["motor", *(heading for heading, _, _ in COLUMNS.values())], rows)
    error = _normalised_errors(mechanism, found)
    yield (
        f"Of these {error.size} values {np.count_nonzero(np.abs(error) < 1.0)} are within one sigma and "
        f"{np.count_nonzero(np.abs(error) < 2.0)} within two; the largest error is {np.abs(error).max():.1f} sigma.\n"
    )


def _normalised_errors(mechanism: Mechanism, found: Identification) -> FloatArray:
    truth, table_ = _truth(mechanism), found.parameters
    rows = [k for k, name in enumerate(table_.names) if name in truth]
    known = np.array([truth[table_.names[k]] for k in rows])
    return np.asarray((table_.values[rows] - known) / table_.sigma[rows])


def _consistency(mechanism: Mechanism, duration: float, seeds: range) -> str:
    """Squared errors over squared sigmas, of other recordings of the same limb."""
    squared = [
        np.mean(_normalised_errors(mechanism, identify(make_study(mechanism, duration, seed))) ** 2) for seed in seeds
    ]
    return (
        f"Over {len(squared)} further recordings (seeds {seeds[0]} to {seeds[-1]}) the mean of (error / sigma)^2 is "
        f"{np.mean(squared):.2f}.\n"
    )


def _laws(mechanism: Mechanism, found: dict[str, Identification]) -> Iterator[str]:
    yield "Held-out error of the torque with PWM = 0 over its RMS [%], and the largest error of a drive gain [%]:\n"
    rows = []
    for name, result in found.items():
        gains = dict(zip(result.parameters.names, result.parameters.values, strict=True))
        off = [
            abs(gains[f"{motor}/drive_gain"] / gain - 1.0)
            for motor, gain in zip(mechanism.coupling.motor_names, mechanism.gain, strict=True)
        ]
        rows.append(
            [name, *(number(100.0 * score.relative_error, 1) for score in result.scores), number(100 * max(off))]
        )
    yield from table(["law", *mechanism.coupling.motor_names, "gain"], rows)
    yield _about_zero_slope(found)


def _about_zero_slope(found: dict[str, Identification]) -> str:
    """What the constraint does to the static friction of the constrained side."""
    free, held = (found[name].parameters for name in (DEFAULT, "Stribeck, zero slope at 0+"))
    rows = [k for k, name in enumerate(free.names) if name.endswith("/static_positive")]
    shrunk = np.median(free.sigma[rows] / held.sigma[rows])
    moved = np.abs(free.values[rows] - held.values[rows]).max()
    return (
        f"Zero slope at 0+ makes the sigma of sigma_s+ {shrunk:.1f} times smaller (median) and moves it by up to "
        f"{moved:.2f} N m.\n"
    )


def _scores(joint_wise: Identification, motor_wise: Identification) -> Iterator[str]:
    rows = [
        [kind, *(f"{score.joint}: {number(score.model_error)} of {number(score.torque_rms)}" for score in found.scores)]
        for kind, found in (("joint by joint", joint_wise), ("motor by motor", motor_wise))
    ]
    yield from table(["held-out error of torque RMS [N m]", "", "", ""], rows)


def _widths(study: Study) -> Iterator[str]:
    """How far the PWM moves while the motor sticks after a reversal, and what static friction allows."""
    course, mechanism = study.driven_course, study.mechanism
    rows = []
    for k, motor in enumerate(mechanism.coupling.motor_names):
        spans = _reversal_spans(course.pwm[:, k], course.motor_velocity[:, k])
        _, _, plus, minus = mechanism.friction[k]
        rows.append([motor, row_of(spans, 1), number((plus + minus) / mechanism.gain[k], 1)])
    yield from table(["motor", "PWM passed at each reversal [%]", "(sigma_s+ + sigma_s-) / K_pwm [%]"], rows)


def _reversal_spans(pwm: FloatArray, velocity: FloatArray) -> list[float]:
    """Width in PWM of every standstill between slips in opposite directions while the motor is driven."""
    moves = np.flatnonzero((np.abs(velocity) > 1e-7) & (np.abs(pwm) > 0.0))
    turns = np.flatnonzero((np.sign(velocity[moves][1:]) != np.sign(velocity[moves][:-1])) & (np.diff(moves) > 1))
    return [float(np.ptp(pwm[moves[k] + 1 : moves[k + 1]])) for k in turns]
