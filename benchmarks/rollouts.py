"""Does a simulated robot with the parameters of `identify` move under recorded commands as the recorded one?

    python -m benchmarks.rollouts RECORDING URDF --kp 20 --kd 1.5 [--limbs FL,FR]

RECORDING has ``position/<joint>`` and ``command/<joint>`` of legs that hang in the air, such as the chirp of 23 s at
200 Hz of ``datasets/go2`` of github.com/iit-DLSLab/sim2real-robot-identification (BSD-3) as an ``.npz``. Prints a table
as Markdown. A leg takes a minute.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from benchmarks.shared.command import command, existing_path, make_parser
from benchmarks.shared.pages import header, row
from friction_estimator.api.experiments import load_recording
from friction_estimator.api.identify import identify
from friction_estimator.api.validate import validate
from friction_estimator.identification.joint_log import JointLog
from friction_estimator.io.robot import Robot, load_robot

_MRAD = 1e-3


def compare(log: JointLog, robot: Robot, kp: float, kd: float) -> None:
    """Print the rows of one leg."""
    for words, known in (("`identify`", False), ("`identify --known-inertia`", True)):
        result = identify(log, robot, kp=kp, kd=kd, known_inertia=known)
        table = dict(zip(result.parameters.names, result.parameters.values.tolist(), strict=True))
        for score in validate(result, log, robot, kp=kp, kd=kd, rollout=True).rollouts:
            loss, damping = (f"{table[f'{score.joint}/{kind}']:.3f}" for kind in ("coulomb", "viscous"))
            errors = (f"{one / _MRAD:.1f}" for one in (score.identified, score.urdf))
            print(row((score.joint, words, loss, damping, *errors)), flush=True)


@command
def main(arguments: Sequence[str] | None = None) -> None:
    """Compare leg by leg."""
    parser = make_parser("rollouts", __doc__)
    parser.add_argument("recording", type=existing_path, help="positions and commands of the joints")
    parser.add_argument("urdf", type=existing_path, help="model of the robot")
    parser.add_argument("--kp", type=float, required=True, help="gain of the drives [N m/rad]")
    parser.add_argument("--kd", type=float, required=True, help="damping of the drives [N m s/rad]")
    parser.add_argument("--limbs", type=lambda text: text.split(","), default=None, help="first letters of the joints")
    given = parser.parse_args(arguments)
    robot = load_robot(given.urdf, {"robot.fixed_base": True, "observer": "momentum"})
    log = load_recording(given.recording, robot=robot)
    limbs = given.limbs or list(dict.fromkeys(name.partition("_")[0] for name in log.joint_names))
    if unknown := [limb for limb in limbs if not any(name.startswith(limb) for name in log.joint_names)]:
        parser.error(f"argument --limbs: no joint of the recording begins with {', '.join(unknown)}")
    print(header(("joint", "parameters", "F_c [N m]", "F_v [N m s/rad]", "rollout [mrad]", "URDF alone [mrad]")))
    for limb in limbs:
        compare(log.select(tuple(name for name in log.joint_names if name.startswith(limb))), robot, given.kp, given.kd)


if __name__ == "__main__":
    sys.exit(main())
