"""How well do the observers find the external torque of a real leg from motor torques, without its foot sensor?

    python -m benchmarks.external_torque FOLDER [-o docs/results/external_torque.md]

FOLDER holds the recording of a leg of ODRI on a test stand (machines-in-motion/mim_estimation, BSD-3): press_1khz.npz
with position/<joint>, effort/<joint> and foot_force/x y z in world axes at 1 kHz, and teststand.urdf. A hand presses
and pulls the foot. In the first half the observers learn with the foot sensor. In the second one they start from the
parameters that they have saved, and have no foot sensor; the truth is J^T F of the sensor. A least-squares fit by hand
to the same first half shows what is possible. Fills the tables of the page. Takes a minute.
"""

from __future__ import annotations

import math
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
from scipy.signal import butter, lfilter, savgol_filter, sosfiltfilt

from benchmarks.shared.command import command, command_line, folder_with, make_parser
from benchmarks.shared.pages import DOCS, add_page, number, row_of, table
from friction_estimator.config import Config, config_from_parameters
from friction_estimator.estimation.estimator import Estimator
from friction_estimator.io.parameters import load_parameters, save_parameters
from friction_estimator.metrics import root_mean_square
from friction_estimator.types import FloatArray, FrictionEstimate, JointSample, WrenchSample

PAGE = DOCS / "results" / "external_torque.md"
JOINTS, FOOT = ("HFE", "KFE"), "contact"
PERIOD = 1e-3
SMOOTHING = butter(2, 5.0, fs=1.0 / PERIOD, output="sos")
"""Low-pass of the comparison, forward and backward: force plate and belts vibrate at 33 Hz, a hand is slower."""
SETTLED = 0.3
"""Time after the start of each half that does not count [s]."""
_LEG = {
    "robot.fixed_base": True, "robot.joints": list(JOINTS), "sensors.velocity_std": 0.05, "sensors.force_std": 0.3,
}  # fmt: skip
_FOOT = {"feet.names": ["foot"], "feet.foot.frame": FOOT, "feet.foot.contact": "point"}
_CURRENT = {"identifier.law": "load_quadrants", "sensors.effort_gain_std": 0.2}
"""Motor torques are currents times a constant, and belts lose a part of them."""
_TARED = {"kalman.calibrate_sensors": False, "sensors.force_bias_std": 0.05, "sensors.force_gain_std": 0.01}
OBSERVERS: dict[str, tuple[dict[str, Any], float]] = {
    "momentum, coulomb_viscous": ({"observer": "momentum", "identifier.phases": "all"}, 30.0),
    "momentum, load_quadrants": ({"observer": "momentum", "identifier.phases": "all"} | _CURRENT, 30.0),
    "kalman, as it comes": ({}, 40.0),
    "kalman, load_quadrants, tared foot sensor": (_CURRENT | _TARED, 40.0),
}
"""Parameters, and bandwidth of the external torque [rad/s]."""
_HEADING = ("external torque", "behind the observer's low-pass", "both smoothed, 5 Hz", "RMS error [N m]", "bias [N m]")


@dataclass(frozen=True)
class Recording:
    """The leg: readings (m, 2), force on the foot (m, 3), and what follows from the model of the URDF (m, 2)."""

    position: FloatArray
    effort: FloatArray
    wrench: FloatArray
    external: FloatArray
    rigid: FloatArray
    regressor: FloatArray
    velocity: FloatArray


def read(folder: Path) -> Recording:
    """Read the recording; velocities and accelerations of the fit by hand are those of a smoothing polynomial."""
    model = pin.buildModelFromUrdf(str(folder / "teststand.urdf"))
    fixed = [i for i, name in enumerate(model.names) if name not in ("universe", *JOINTS)]
    model = pin.buildReducedModel(model, fixed, pin.neutral(model))
    data, frame = model.createData(), model.getFrameId(FOOT)
    with np.load(folder / "press_1khz.npz") as log:
        q, u = (np.column_stack([log[f"{kind}/{joint}"] for joint in JOINTS]) for kind in ("position", "effort"))
        force = np.column_stack([log[f"foot_force/{axis}"] for axis in "xyz"])
    smooth, dq, ddq = (savgol_filter(q, 51, 3, deriv=k, delta=PERIOD, axis=0) for k in range(3))
    wrench, external, rigid, regressor = np.zeros((len(q), 6)), *np.empty((2, *q.shape)), np.empty((*q.shape, 20))
    for k in range(len(q)):
        J = pin.computeFrameJacobian(model, data, q[k], frame, pin.LOCAL_WORLD_ALIGNED)[:3]
        pin.framesForwardKinematics(model, data, q[k])
        wrench[k, :3], external[k] = data.oMf[frame].rotation.T @ force[k], J.T @ force[k]
        rigid[k] = pin.rnea(model, data, smooth[k], dq[k], ddq[k])
        regressor[k] = pin.computeJointTorqueRegressor(model, data, smooth[k], dq[k], ddq[k])
    return Recording(q, u, wrench, external, rigid, regressor, dq)


def low_pass(signal: FloatArray, gain: float) -> FloatArray:
    """First-order low-pass of an observer, for signals (m, ...)."""
    decay = np.exp(-gain * PERIOD)
    return np.asarray(lfilter([1.0 - decay], [1.0, -decay], signal, axis=0))


def fit_by_hand(leg: Recording, half: int, free_gain: bool, gain: float = 40.0) -> FloatArray:
    """External torque (m, 2) by least squares: rigid body, friction of two slopes, offset, and the drive gain."""
    found = np.empty_like(leg.effort)
    for joint in range(len(JOINTS)):
        v, columns = leg.velocity[:, joint], leg.regressor[:, joint]
        friction = np.tanh(v / 0.05), np.tanh(v / 0.3), v, np.ones_like(v)
        terms = np.column_stack((columns[:, np.abs(columns).max(axis=0) > 1e-9], *friction))
        if free_gain:
            terms = np.column_stack((terms, leg.effort[:, joint]))
        terms, torque = low_pass(terms, gain), low_pass(leg.effort[:, joint], gain)
        used = slice(round(SETTLED / PERIOD), half)
        target = low_pass(leg.external[:, joint], gain)[used] + torque[used]
        found[:, joint] = terms @ np.linalg.lstsq(terms[used], target, rcond=1e-5)[0] - torque
    return found


def config_of(parameters: Mapping[str, Any], foot: bool) -> Config:
    """Configuration with the foot sensor, or without one."""
    return config_from_parameters(
        _LEG | dict(parameters) | (_FOOT if foot else {"robot.unmeasured_contacts": list(JOINTS)})
    )


def drive(one: Estimator, leg: Recording, samples: range, foot: bool) -> list[FrictionEstimate]:
    """Estimates of a live run over some samples."""
    estimates = list[FrictionEstimate]()
    for k in samples:
        stamp_ns = round(1e9 * k * PERIOD)
        if foot:
            one.add(WrenchSample(stamp_ns, 0, leg.wrench[k]))
        estimates += one.add(JointSample(stamp_ns, leg.position[k], None, leg.effort[k]))
    return estimates


def observe(leg: Recording, urdf_xml: str, parameters: Mapping[str, Any], half: int) -> tuple[FloatArray, FloatArray]:
    """Friction of the first half and external torque of the second (m, 2), NaN before and after.

    Readings that repeat the positions of the one before are dropped: there it is interpolated.
    """
    teacher = Estimator(config_of(parameters, True), urdf_xml)
    friction = drive(teacher, leg, range(half), True)
    with tempfile.TemporaryDirectory() as folder:
        save_parameters(Path(folder) / "leg.yaml", teacher.identified)
        one = Estimator(config_of(parameters, False), urdf_xml)
        one.restore(load_parameters(Path(folder) / "leg.yaml"))
    found = np.full((2, *leg.effort.shape), np.nan)
    external = drive(one, leg, range(half, len(leg.effort)), False)
    for values, estimates, name in zip(found, (friction, external), ("friction", "external_torque"), strict=True):
        rows = [round(1e-9 * estimate.stamp_ns / PERIOD) for estimate in estimates]
        for joint in range(len(JOINTS)):
            known = [getattr(estimate, name)[joint] for estimate in estimates]
            values[:, joint] = np.interp(np.arange(len(values)), rows, known, math.nan, math.nan)
    return found[0], found[1]


def cells(name: str, found: FloatArray, leg: Recording, half: int, gain: float) -> list[str]:
    """Row of the table: R^2 of hip and knee, twice, errors and bias."""
    used = slice(half + round(SETTLED / PERIOD), int(np.flatnonzero(np.isfinite(found).all(axis=1))[-1]) + 1)
    x, y = found[used], low_pass(leg.external, gain)[used]
    pairs = (x, y), tuple(sosfiltfilt(SMOOTHING, values, axis=0) for values in (x, y))
    scores = [1.0 - np.mean((a - b) ** 2, axis=0) / b.var(axis=0) for a, b in pairs]
    return [
        name,
        *(row_of(score, 3) for score in scores),
        row_of(root_mean_square(x - y), 3),
        row_of((x - y).mean(0), 3),
    ]


@command
def main(arguments: Sequence[str] | None = None) -> None:
    parser = make_parser("external_torque", __doc__)
    parser.add_argument("folder", type=folder_with("press_1khz.npz", "teststand.urdf"), help="recording of the leg")
    add_page(parser, PAGE, "command", "external torque", "friction")
    options = parser.parse_args(arguments)
    leg, urdf_xml = read(options.folder), (options.folder / "teststand.urdf").read_text(encoding="utf-8")
    half = len(leg.effort) // 2
    rows = [
        cells("fit by hand, drive gain as given", fit_by_hand(leg, half, False), leg, half, 40.0),
        cells("fit by hand, free drive gain", fit_by_hand(leg, half, True), leg, half, 40.0),
        cells("model of the URDF alone", low_pass(leg.rigid - leg.effort, 40.0), leg, half, 40.0),
    ]
    learned = slice(half // 2, half)
    largest = root_mean_square((leg.effort + leg.external - leg.rigid)[learned])
    friction = [["friction and all errors: torque less rigid body and J^T F", row_of(largest)]]
    for name, (parameters, gain) in OBSERVERS.items():
        found = observe(leg, urdf_xml, parameters, half)
        friction.append([name, row_of(root_mean_square(found[0][learned]))])
        rows.append(cells(name, found[1], leg, half, gain))
        print(rows[-1], file=sys.stderr)
    options.output.fill("command", [f"`{command_line('external_torque', arguments)}`"])
    options.output.fill("external torque", table(_HEADING, rows))
    options.output.fill("friction", table(("RMS of the friction, hip and knee [N m]", ""), friction))
    print(f"{number(len(leg.effort) * PERIOD, 1)} s")


if __name__ == "__main__":
    sys.exit(main())
