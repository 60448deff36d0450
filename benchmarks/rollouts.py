"""Does a simulated robot with the parameters of `identify` move under recorded commands as with a fit of the rollout?

    python -m benchmarks.rollouts RECORDING URDF --kp 20 --kd 1.5 [--limbs FL,FR] [--given 0.165,0.174,0.712,...]

RECORDING has ``position/<joint>`` and ``command/<joint>`` of legs that hang in the air, such as the chirp of 23 s at
200 Hz of ``datasets/go2`` of github.com/iit-DLSLab/sim2real-robot-identification (BSD-3) as an ``.npz``. The fit is of
the kind of PACE (leggedrobotics/pace-sim2real): friction loss, damping, armature and offset of every joint and one
delay, from the positions alone, by scipy's least squares on MuJoCo rollouts from several starts. It does not start from
an identification: it keeps the links of the URDF, and drives are MuJoCo's position servos. `--given` has friction loss,
damping and armature of the joints of a limb, one after another, as somebody published them: then only offsets and delay
are fitted. Prints a table as Markdown. A leg takes some minutes.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import mujoco
import numpy as np
from mujoco import rollout
from scipy.optimize import least_squares

from benchmarks.shared.command import command, existing_path, make_parser
from benchmarks.shared.pages import header, row
from friction_estimator.api.experiments import load_recording
from friction_estimator.api.identify import identify
from friction_estimator.api.validate import validate
from friction_estimator.identification.joint_log import COMMAND, JointLog
from friction_estimator.io.robot import Robot, load_robot
from friction_estimator.metrics import root_mean_square
from friction_estimator.simulation.simulator import ROLLOUT_STEP, compile_joints, fixed_base_spec
from friction_estimator.types import FloatArray, IntArray

STARTS = (0.3, 1.0, 3.0)
"""Sizes of the parameters that a fit starts from, in usual ones."""
_EVALUATIONS, _CHANGE = 25, 1e-3
_USUAL = (0.1, 0.1, 0.01, 0.0)
"""Friction loss [N m], damping [N m s/rad], armature [kg m^2] and offset [rad]."""
_SCALE, _DELAY = (0.1, 0.1, 0.01, 0.01), 0.005
_MRAD = 1e-3


@dataclass(frozen=True)
class Leg:
    """Rollouts of one leg whose drives are MuJoCo's position servos, which hold a command until the next one.

    Attributes
    ----------
    model : with one servo a joint
    places : of the joints among the degrees of freedom
    log : recorded
    """

    model: mujoco.MjModel
    places: IntArray
    log: JointLog

    @classmethod
    def of(cls, urdf_xml: str, log: JointLog, kp: float, kd: float) -> Leg:
        """The leg on a base that does not move; other joints are locked."""
        spec = fixed_base_spec(urdf_xml, log.joint_names)
        for name in log.joint_names:
            servo = spec.add_actuator()
            servo.target, servo.trntype = name, mujoco.mjtTrn.mjTRN_JOINT
            servo.gaintype, servo.biastype = mujoco.mjtGain.mjGAIN_FIXED, mujoco.mjtBias.mjBIAS_AFFINE
            servo.gainprm[0], servo.biasprm[1], servo.biasprm[2] = kp, -kp, -kd
        return cls(*compile_joints(spec, log.joint_names), log)

    def errors(self, parameters: Sequence[FloatArray]) -> list[FloatArray]:
        """Simulated less recorded positions (N, n) of parameters (4 n + 1,) each [rad]."""
        log, n = self.log, len(self.places)
        time, data = log.time - log.time[0], mujoco.MjData(self.model)
        grid = np.arange(int(np.ceil(time[-1] / ROLLOUT_STEP)) + 1) * ROLLOUT_STEP
        kind = mujoco.mjtState.mjSTATE_FULLPHYSICS
        models, starts, controls = [], [], np.zeros((len(parameters), grid.size, n))
        for number, values in enumerate(parameters):
            loss, damping, armature, offset = values[:-1].reshape(4, n)
            model = copy.copy(self.model)
            model.dof_frictionloss[self.places], model.dof_damping[self.places] = np.abs(loss), np.abs(damping)
            model.dof_armature[self.places] = np.abs(armature)
            models.append(model)
            controls[number] = self._held(grid - abs(values[-1]), time) + offset
            mujoco.mj_resetData(model, data)
            data.qpos[self.places] = log.position[0]
            mujoco.mj_forward(model, data)
            starts.append(np.zeros(mujoco.mj_stateSize(model, kind)))
            mujoco.mj_getState(model, data, starts[-1], kind)
        states, _ = rollout.rollout(models, [data], np.array(starts), controls)
        found = states[:, :-1, 1 + self.places]
        paths = [np.vstack((log.position[0], path)) for path in found]
        return [np.column_stack([np.interp(time, grid, one) for one in path.T]) - log.position for path in paths]

    def _held(self, wanted: FloatArray, time: FloatArray) -> FloatArray:
        """Commands that are held, at these times; a step is spread over one step of the simulation."""
        last = np.clip(np.searchsorted(time, wanted, side="right") - 1, 0, None)
        share = np.clip((wanted - time[last]) / ROLLOUT_STEP, 0.0, 1.0)[:, None]
        command = self.log.inputs[COMMAND]
        return share * command[last] + (1.0 - share) * command[np.maximum(last - 1, 0)]

    def fitted(self, given: Sequence[float]) -> FloatArray:
        """Parameters (4 n + 1,) of the best of several least-squares fits; the first ones may be given."""
        n, fixed = len(self.places), len(given)
        scale = np.append(np.repeat(_SCALE, n), _DELAY)
        weight = 1.0 / (_MRAD * np.sqrt(self.log.time.size))

        def errors(tried: Sequence[FloatArray]) -> list[FloatArray]:
            found = self.errors([np.append(given, one * scale[fixed:]) for one in tried])
            return [weight * one.ravel() for one in found]

        def residual(values: FloatArray) -> FloatArray:
            return errors([values])[0]

        def gradient(values: FloatArray) -> FloatArray:
            found = errors([values, *(values + _CHANGE * axis for axis in np.eye(values.size))])
            return np.column_stack([(one - found[0]) / _CHANGE for one in found[1:]])

        usual = (np.append(np.repeat(_USUAL, n), 0.2 * _DELAY) / scale)[fixed:]
        fits = [least_squares(residual, start * usual, gradient, max_nfev=_EVALUATIONS) for start in STARTS]
        return np.append(given, min(fits, key=lambda one: one.cost).x * scale[fixed:])


def _rms(error: FloatArray) -> list[float]:
    return (root_mean_square(error) / _MRAD).tolist()


def compare(
    recording: Path, robot: Robot, names: Sequence[str], kp: float, kd: float, published: Sequence[float]
) -> None:
    """Print the rows of one leg."""
    log = load_recording(recording, robot=robot).select(tuple(names))
    leg = Leg.of(robot.urdf_xml, log, kp, kd)
    words, values = "given" if published else "fit of the rollout", leg.fitted(published)
    friction = np.abs(values[: 2 * len(names)].reshape(2, -1))
    for name, error, (loss, damping) in zip(names, _rms(leg.errors([values])[0]), friction.T, strict=True):
        print(row((name, words, f"{loss:.3f}", f"{damping:.3f}", f"{error:.1f}", "")), flush=True)
    for words, known in (("`identify`", False), ("`identify --known-inertia`", True)):
        result = identify(log, robot, kp=kp, kd=kd, known_inertia=known)
        table = dict(zip(result.parameters.names, result.parameters.values.tolist(), strict=True))
        scores = validate(result, log, robot, kp=kp, kd=kd, rollout=True).rollouts
        for score in scores:
            loss, damping = (table[f"{score.joint}/{kind}"] for kind in ("coulomb", "viscous"))
            cells = score.joint, words, f"{loss:.3f}", f"{damping:.3f}", f"{score.identified / _MRAD:.1f}"
            print(row((*cells, f"{score.urdf / _MRAD:.1f}")), flush=True)


@command
def main(arguments: Sequence[str] | None = None) -> None:
    """Compare leg by leg."""
    parser = make_parser("rollouts", __doc__)
    parser.add_argument("recording", type=existing_path, help="positions and commands of the joints")
    parser.add_argument("urdf", type=existing_path, help="model of the robot")
    parser.add_argument("--kp", type=float, required=True, help="gain of the drives [N m/rad]")
    parser.add_argument("--kd", type=float, required=True, help="damping of the drives [N m s/rad]")
    parser.add_argument("--limbs", type=lambda text: text.split(","), default=None, help="first letters of the joints")
    parser.add_argument("--given", type=lambda text: [float(one) for one in text.split(",")], default=[],
                        help="friction loss, damping and armature of the joints of a limb")  # fmt: skip
    given = parser.parse_args(arguments)
    robot = load_robot(given.urdf, {"robot.fixed_base": True, "observer": "momentum"})
    joints = load_recording(given.recording, robot=robot).joint_names
    limbs = given.limbs or list(dict.fromkeys(name.partition("_")[0] for name in joints))
    if unknown := [limb for limb in limbs if not any(name.startswith(limb) for name in joints)]:
        parser.error(f"argument --limbs: no joint of the recording begins with {', '.join(unknown)}")
    print(header(("joint", "parameters", "F_c [N m]", "F_v [N m s/rad]", "rollout [mrad]", "URDF alone [mrad]")))
    for limb in limbs:
        names = [name for name in joints if name.startswith(limb)]
        if given.given and len(given.given) != 3 * len(names):
            parser.error(f"argument --given: {len(given.given)} numbers, the limb {limb} needs {3 * len(names)}")
        compare(given.recording, robot, names, given.kp, given.kd, given.given)


if __name__ == "__main__":
    sys.exit(main())
