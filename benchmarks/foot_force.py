"""How well does `identify` find the friction of a real leg whose foot is pressed on a force sensor?

    python -m benchmarks.foot_force FOLDER

FOLDER holds a press of one leg of github.com/machines-in-motion/mim_estimation (BSD-3, demos/2019-07-04_16-25-06) as
``press_1khz.npz`` (``time``, ``position/<joint>``, ``effort/<joint>``, ``foot_force/x, y, z``) and ``teststand.urdf``.
A hand moves the leg of 0.2 kg for 23 s; the foot pulls in 39 % of the samples. A least-squares fit of F_c, F_v and a
constant made by hand shows what is usual. Prints a table as Markdown. Takes a minute.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pinocchio as pin
from scipy.signal import butter, sosfiltfilt

from benchmarks.shared.command import command, folder_with, make_parser
from benchmarks.shared.pages import header, row
from friction_estimator.api.identify import identify
from friction_estimator.identification.joint_log import ExternalWrench
from friction_estimator.identification.linear_problem import rms
from friction_estimator.io.table_files import joint_log_from_table
from friction_estimator.types import FloatArray

RECORDING, MODEL = "press_1khz.npz", "teststand.urdf"
_FOLDS, _EDGE, _STEP = 5, 0.6, 50


def by_hand(folder: Path, cutoff_hz: float, free_gravity: bool) -> FloatArray:
    """Held-out error and RMS torque (2, 2) of both joints: F_c sgn(dq), F_v dq, a constant, the links of the URDF.

    Parameters
    ----------
    cutoff_hz : of a zero-phase low-pass on both sides
    free_gravity : sine and cosine of the angles of both links are fitted, too, joint by joint
    """
    log = joint_log_from_table(folder / RECORDING)
    assert log.effort is not None
    model = pin.buildModelFromUrdf(str(folder / MODEL))
    model = pin.buildReducedModel(model, [model.getJointId("joint_z")], pin.neutral(model))
    data, foot = model.createData(), model.getFrameId("contact")
    period = float(np.median(np.diff(log.time)))

    def smooth(signal: FloatArray, hz: float = cutoff_hz) -> FloatArray:
        return np.asarray(sosfiltfilt(butter(4, 2.0 * hz * period, output="sos"), signal, axis=0))

    q = smooth(log.position, 2.0 * cutoff_hz)
    v = np.gradient(q, period, axis=0)
    a = np.gradient(v, period, axis=0)
    known, force = np.zeros_like(q), log.wrenches["foot_force"][:, :3]
    for k in range(len(q)):
        jacobian = pin.computeFrameJacobian(model, data, log.position[k], foot, pin.LOCAL_WORLD_ALIGNED)[:3]
        known[k] = pin.rnea(model, data, q[k], v[k], a[k]) - jacobian.T @ force[k]
    margin = round(_EDGE / period)
    kept = slice(margin, -margin, _STEP)
    angles = np.column_stack([q[:, 0], q.sum(axis=1)])
    gravity = np.column_stack([np.sin(angles), np.cos(angles)])[:, : 4 * free_gravity]
    found = []
    for joint in range(2):
        columns = [np.sign(v[:, joint]), v[:, joint], np.ones(len(q)), *gravity.T]
        W = smooth(np.column_stack(columns))[kept]
        torque = smooth(log.effort[:, joint])[kept]
        y, fold, error = torque - smooth(known[:, joint])[kept], np.arange(len(torque)) * _FOLDS // len(torque), []
        for number in range(_FOLDS):
            held_out = fold == number
            values = np.linalg.lstsq(W[~held_out], y[~held_out], rcond=None)[0]
            error.append(y[held_out] - W[held_out] @ values)
        found.append([rms(np.concatenate(error)), rms(torque)])
    return np.array(found)


@command
def main(arguments: Sequence[str] | None = None) -> None:
    """Fit both ways, and print."""
    parser = make_parser("foot_force", __doc__)
    parser.add_argument("folder", type=folder_with(RECORDING, MODEL), help="recording of the leg")
    folder = parser.parse_args(arguments).folder
    print(
        header(("fit", "band [Hz]", "joint", "F_c [N m]", "F_v [N m s/rad]", "held-out error [N m]", "of the torque"))
    )
    for words, known in (("`identify`", False), ("`identify --known-inertia`", True)):
        foot = [ExternalWrench("contact", "foot_force", "base_link")]
        found = identify(folder / RECORDING, folder / MODEL, wrenches=foot, known_inertia=known)
        band = found.predictions[0].treatment.band_hz
        for k, score in enumerate(found.scores):
            friction = (f"{found.values[k, p]:.3f} +- {found.sigma[k, p]:.3f}" for p in range(2))
            cells = words, f"{band:.1f}", score.joint, *friction, f"{score.held_out_error:.3f}"
            print(row((*cells, f"{100.0 * score.relative_error:.1f} %")), flush=True)
        for name, free in (("by hand", False), ("by hand, gravity free in each joint", True)):
            for joint, (error, size) in zip(found.joint_names, by_hand(folder, band, free).tolist(), strict=True):
                cells = name, f"{band:.1f}", joint, "-", "-", f"{error:.3f}", f"{100.0 * error / size:.1f} %"
                print(row(cells), flush=True)


if __name__ == "__main__":
    sys.exit(main())
