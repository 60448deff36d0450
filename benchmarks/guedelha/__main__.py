"""Does the friction of coupled motors come out as it went in (Guedelha et al. 2017)?

    python -m benchmarks.guedelha [--duration 60] [--seed 1] [--runs 6]

Fills the tables of docs/results/guedelha.md and draws its three figures. Takes five minutes.

The limbs are simulated, not the model evaluated: rigid bodies of pinocchio, motors behind the coupling matrix with
their reflected inertia (given to the method, as in the paper), dry friction that holds a motor at rest while it can
(projected Gauss-Seidel, 1 ms), weight, and a hand that is a spring and a damper. First the hand leads the joints at 0
to 30 deg/s with PWM = 0, 60 s; then each motor in turn goes through 2 triangles of +-40 % PWM against the hand, 60 s
together. Recorded are joint positions (16 bit) and joint torques with 0.1 N m of noise, at 100 Hz. tau_0 acts with PWM
= 0, too.

The leg has the values of Table 1, and the K_c that zero slope gives (`limbs.zero_slope_coulomb`, positive for all six
joints); the torso has the coupling matrix of the iCub and the friction of figure 10 (K_c 0.85 N m, K_v 0.31 N m s/deg,
sigma_s+ 1.27 N m, sigma_s- 1.95 N m) times 1, 0.8 and 1.4. Drive gains and tau_0 are ours. "Sigma of sigma_s+" is the
median over the motors; "joint by joint" is a fit as if every joint had one motor (section 3.4.2).
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.guedelha.limbs import DEGREE, Mechanism, leg, torso
from benchmarks.guedelha.recordings import Study, make_study
from benchmarks.shared import figures
from benchmarks.shared.command import command, command_line, longer_than, make_parser
from benchmarks.shared.coupling import motor_torque
from benchmarks.shared.pages import DOCS, add_page, number, row_of, table
from friction_estimator.config.robot import uncoupled
from friction_estimator.identification.curves.motor import MotorOptions, identify_motor
from friction_estimator.identification.result import Identification
from friction_estimator.laws import make_law
from friction_estimator.types import FloatArray

PAGE = DOCS / "results" / "guedelha.md"
LAWS = {
    "Coulomb and viscous, eq. 21 as published": {"law": "coulomb_viscous", "offset": False},
    "Coulomb and viscous, with an offset": {"law": "coulomb_viscous"},
    "Coulomb and viscous of each direction": {"law": "asymmetric"},
    "Stribeck, eqs. 29-31, no offset as published": {"offset": False},
    "Stribeck, with an offset": {},
    "Stribeck, zero slope at 0+": {"zero_slope": "positive"},
    "Stribeck, its velocity searched": {"stribeck_velocity": None},
}
DEFAULT = "Stribeck, with an offset"
FIGURE_10 = ("Coulomb and viscous, with an offset", DEFAULT)
KNEE = "r_knee"

COLUMNS = {
    "static_positive": ("sigma_s+ [N m]", 1.0, 3),
    "static_negative": ("sigma_s- [N m]", 1.0, 3),
    "viscous": ("K_v [N m s/deg]", DEGREE, 4),
    "coulomb": ("K_c [N m]", 1.0, 3),
    "drive_gain": ("K_pwm [N m/%]", 1.0, 4),
    "drive_offset": ("tau_0 [N m]", 1.0, 3),
}


@command
def main(arguments: Sequence[str] | None = None) -> None:
    parser = make_parser("guedelha", __doc__)
    parser.add_argument("--duration", type=longer_than(3.0), default=60.0, help="of each of the two recordings [s]")
    parser.add_argument("--seed", type=int, default=1, help="of the motion of the hand and of the noise")
    parser.add_argument(
        "--runs", type=int, default=6, help="further recordings of the torso, for the check of the sigmas"
    )
    limb_places = [f"{what} of the {limb}" for limb in ("leg", "torso") for what in ("parameters", "errors", "laws")]
    add_page(parser, PAGE, "command", *limb_places, "coupling", "reversals")
    options = parser.parse_args(arguments)
    page = options.output
    for limb, mechanism in (("leg", leg()), ("torso", torso())):
        study = make_study(mechanism, options.duration, options.seed)
        found = {name: identify(study, **changes) for name, changes in LAWS.items()}
        page.fill(f"parameters of the {limb}", parameter_table(mechanism, found[DEFAULT]))
        page.fill(f"laws of the {limb}", law_table(mechanism, found))
        errors = {f"seed {options.seed}": _normalised_errors(mechanism, found[DEFAULT])}
        if limb == "leg":
            knee = mechanism.friction[list(mechanism.coupling.motor_names).index(KNEE)]
            shown = {name: found[name] for name in FIGURE_10}
            draw_laws(shown, knee, KNEE, page.images / "guedelha_friction.svg")
        elif options.runs:
            seeds = range(options.seed + 1, options.seed + 1 + options.runs)
            others = (make_study(mechanism, options.duration, seed) for seed in seeds)
            errors[f"seeds {seeds[0]} to {seeds[-1]}"] = np.concatenate(
                [_normalised_errors(mechanism, identify(other)) for other in others]
            )
        page.fill(f"errors of the {limb}", error_table(errors))
    alone = identify(joint_by_joint(study), driven=False)
    draw_coupling(found[DEFAULT], alone, page.images / "guedelha_coupling.svg")
    page.fill("coupling", score_table({"joint by joint": alone, "motor by motor": found[DEFAULT]}))
    draw_hysteresis(study, found[DEFAULT], page.images / "guedelha_hysteresis.svg")
    page.fill("reversals", reversal_table(study))
    page.fill("command", [f"`{command_line('guedelha', arguments)}`"])
    print(page.path)


def joint_by_joint(study: Study) -> Study:
    """The same recording as if every joint had one motor without inertia."""
    names = study.mechanism.coupling.joint_names
    return replace(study, mechanism=replace(study.mechanism, coupling=uncoupled(names), inertia=np.zeros(len(names))))


def parameter_table(mechanism: Mechanism, found: Identification) -> list[str]:
    """Injected value, identified value and its sigma."""
    truth, parameters = _truth(mechanism), found.parameters
    rows = []
    for motor in mechanism.coupling.motor_names:
        cells = [motor]
        for name, (_, scale, digits) in COLUMNS.items():
            k = parameters.names.index(f"{motor}/{name}")
            injected = number(scale * truth[parameters.names[k]], digits - 1)
            value, sigma = (number(scale * column[k], digits) for column in (parameters.values, parameters.sigma))
            cells.append(f"{injected} → {value} ± {sigma}")
        rows.append(cells)
    return table(["motor", *(heading for heading, _, _ in COLUMNS.values())], rows)


def error_table(errors: Mapping[str, FloatArray]) -> list[str]:
    """Errors of identified parameters by their sigma, for each group of recordings."""
    heading = (
        "recordings",
        "values",
        "within one sigma",
        "within two",
        "largest error [sigma]",
        "mean of (error / sigma)^2",
    )
    rows = []
    for name, error in errors.items():
        size = np.abs(error)
        inside = (str(np.count_nonzero(size < limit)) for limit in (1.0, 2.0))
        rows.append((name, str(size.size), *inside, number(size.max(), 1), number(float(np.mean(size**2)))))
    return table(heading, rows)


def law_table(mechanism: Mechanism, found: dict[str, Identification]) -> list[str]:
    """Held-out errors of the laws, the largest error of a drive gain, and the sigma of the static friction."""
    rows = []
    for name, result in found.items():
        values = dict(zip(result.parameters.names, result.parameters.values, strict=True))
        gains = zip(mechanism.coupling.motor_names, mechanism.gain, strict=True)
        worst = max(abs(values[f"{motor}/drive_gain"] / gain - 1.0) for motor, gain in gains)
        static = [k for k, one in enumerate(result.parameters.names) if one.endswith("/static_positive")]
        sigma = number(float(np.median(result.parameters.sigma[static])), 3) if static else ""
        errors = (number(100.0 * score.relative_error, 1) for score in result.scores)
        rows.append((name, *errors, number(100.0 * worst), sigma))
    return table(("law", *mechanism.coupling.motor_names, "gain", "sigma of sigma_s+ [N m], median"), rows)


def score_table(found: Mapping[str, Identification]) -> list[str]:
    """Held-out errors of the torso joint by joint and motor by motor."""
    rows = [
        [
            kind,
            *(f"{score.joint}: {number(score.held_out_error)} of {number(score.torque_rms)}" for score in one.scores),
        ]
        for kind, one in found.items()
    ]
    return table(["held-out error of torque RMS [N m]", "", "", ""], rows)


def reversal_table(study: Study) -> list[str]:
    """Change of the PWM while the motor sticks after a reversal, and what static friction allows."""
    course, mechanism = study.driven_course, study.mechanism
    rows = []
    for k, motor in enumerate(mechanism.coupling.motor_names):
        spans = _reversal_spans(course.pwm[:, k], course.motor_velocity[:, k])
        _, _, plus, minus = mechanism.friction[k]
        rows.append([motor, row_of(spans, 1), number((plus + minus) / mechanism.gain[k], 1)])
    return table(["motor", "PWM passed at each reversal [%]", "(sigma_s+ + sigma_s-) / K_pwm [%]"], rows)


def _reversal_spans(pwm: FloatArray, velocity: FloatArray) -> list[float]:
    """Width in PWM of every standstill between slips in opposite directions while the motor is driven."""
    moves = np.flatnonzero((np.abs(velocity) > 1e-7) & (np.abs(pwm) > 0.0))
    turns = np.flatnonzero((np.sign(velocity[moves][1:]) != np.sign(velocity[moves][:-1])) & (np.diff(moves) > 1))
    return [float(np.ptp(pwm[moves[k] + 1 : moves[k + 1]])) for k in turns]


def identify(study: Study, driven: bool = True, **changes: Any) -> Identification:
    """The method on the recordings of one limb, inertia given."""
    known = dict(zip(study.mechanism.coupling.motor_names, study.mechanism.inertia.tolist(), strict=True))
    options = replace(MotorOptions(inertia=known), **changes)
    return identify_motor([study.free, *([study.driven] if driven else [])], study.mechanism.coupling, options)


def _truth(mechanism: Mechanism) -> dict[str, float]:
    names = ("coulomb", "viscous", "static_positive", "static_negative")
    truth: dict[str, float] = {}
    for k, motor in enumerate(mechanism.coupling.motor_names):
        truth |= {f"{motor}/{name}": float(mechanism.friction[k, i]) for i, name in enumerate(names)}
        truth |= {f"{motor}/drive_gain": mechanism.gain[k], f"{motor}/drive_offset": mechanism.offset[k]}
    return truth


def _normalised_errors(mechanism: Mechanism, found: Identification) -> FloatArray:
    truth, table_ = _truth(mechanism), found.parameters
    rows = [k for k, name in enumerate(table_.names) if name in truth]
    known = np.array([truth[table_.names[k]] for k in rows])
    return np.asarray((table_.values[rows] - known) / table_.sigma[rows])


def draw_laws(found: dict[str, Identification], truth: FloatArray, motor: str, path: Path) -> None:
    """Figure 10: friction over velocity with the fits of several laws; all of it, and near standstill."""
    first = next(iter(found.values()))
    row = first.friction.joint_names.index(motor)
    samples = first.samples[row]
    degrees, panels = np.degrees(samples.velocity), []
    for limit in (1.05 * np.abs(degrees).max(), 6.0):
        panel = figures.Panel("", f"velocity of {motor} [deg/s]", "friction [N m]", legend=not panels)
        for used, colour in ((False, figures.LIGHT_GREY), (True, figures.LIGHT_BLUE)):
            at = (samples.used == used) & (np.abs(degrees) < limit)
            panel.dots(degrees[at], samples.friction[at], colour)
        speed = np.concatenate((-np.geomspace(limit, 1e-3, 200), [np.nan], np.geomspace(1e-3, limit, 200)))
        for (label, result), colour in zip(found.items(), figures.COLOURS, strict=False):
            law = make_law(result.friction.law_names[row])
            values = result.friction.values[row : row + 1, : len(law.parameter_names)]
            panel.line(speed, law.torque(values, speed * DEGREE), colour, label)
        injected = make_law("asymmetric_stribeck").torque(truth[None], speed * DEGREE)
        panel.line(speed, injected, figures.BLACK, "injected", 0.9, dashed=True)
        panels.append(panel)
    top = 2.3 * float(np.abs(truth[[0, 2, 3]]).max())
    panels[1].y_limits = (-top, top)
    figures.draw(path, [panels], height=360.0)


def draw_coupling(motor_wise: Identification, joint_wise: Identification, path: Path) -> None:
    """The same recording joint by joint, where friction is no curve, and motor by motor, where it is."""
    rows = []
    for found in (joint_wise, motor_wise):
        row = []
        for samples in found.samples:
            panel = figures.Panel(samples.joint, "velocity [deg/s]", "friction [N m]")
            degrees = np.degrees(samples.velocity[samples.used])
            panel.dots(degrees, samples.friction[samples.used], figures.LIGHT_BLUE)
            order = np.argsort(degrees)
            panel.line(degrees[order], samples.fitted[samples.used][order], figures.BLACK, width=1.0)
            row.append(panel)
        rows.append(row)
    figures.draw(path, rows, height=520.0)


def draw_hysteresis(study: Study, found: Identification, path: Path) -> None:
    """Figure 11: joint torque, seen from the motor, over its PWM, and the line of the drive without friction."""
    torque = motor_torque(study.mechanism.coupling, study.driven.inputs["joint_torque"])
    values = dict(zip(found.parameters.names, found.parameters.values, strict=True))
    panels = []
    for k, motor in enumerate(study.mechanism.coupling.motor_names):
        panel = figures.Panel(motor, "PWM [%]", "torque behind the gearbox [N m]")
        pwm = study.driven.inputs["pwm"][:, k]
        at = np.abs(pwm) > 0.0
        panel.dots(pwm[at], torque[at, k], figures.LIGHT_BLUE)
        ends = np.array([pwm.min(), pwm.max()])
        panel.line(ends, values[f"{motor}/drive_offset"] + values[f"{motor}/drive_gain"] * ends, figures.BLACK)
        panels.append(panel)
    figures.share_limits(panels, "y")
    figures.draw(path, [panels], height=320.0)


if __name__ == "__main__":
    sys.exit(main())
