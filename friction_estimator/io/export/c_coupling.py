"""What the C header says of motors: how they move joints together, and their drives."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from friction_estimator.io.export.joint_friction import JointFriction
from friction_estimator.robot.transmission import Transmission
from friction_estimator.types import FloatArray

_FUNCTION = """\
/* Friction torques of all joints, from their velocities and the motor torques reflected to them. */
static inline void friction_torques(const double *velocity, const double *load, double *friction)
{
    int joint, motor;
    for (joint = 0; joint < FRICTION_JOINT_COUNT; ++joint) {
        friction[joint] = 0.0;
    }
    for (motor = 0; motor < FRICTION_JOINT_COUNT; ++motor) {
        double turn = 0.0, pull = 0.0, torque;
        for (joint = 0; joint < FRICTION_JOINT_COUNT; ++joint) {
            turn += friction_to_joints[joint][motor] * velocity[joint];
            pull += friction_coupling[joint][motor] * load[joint];
        }
        torque = friction_torque(motor, turn, pull);
        for (joint = 0; joint < FRICTION_JOINT_COUNT; ++joint) {
            friction[joint] += friction_to_joints[joint][motor] * torque;
        }
    }
}
"""


def coupled_motors(moved: Sequence[str], motors: Transmission) -> str:
    """Matrices of the coupling, and a function that gives the friction of all joints.

    Parameters
    ----------
    moved : (n) names of the joints, in the order of the motors at their places
    motors : that move them
    """
    names = ", ".join(map(c_text, moved))
    return (
        "/* Some of these are motors that move several joints together: friction_torque is theirs, at their own\n"
        " * velocity and torque; friction_torques is that of the joints, in this order. */\n"
        f"static const char *const friction_moved_joint_names[FRICTION_JOINT_COUNT] = {{{names}}};\n\n"
        "/* T: joint velocity = T motor velocity. */\n"
        f"{_matrix('friction_coupling', motors.matrix)}\n"
        "/* T^-T: joint torque = T^-T motor torque, motor velocity = (T^-T)^T joint velocity. */\n"
        f"{_matrix('friction_to_joints', motors.to_joints)}\n{_FUNCTION}"
    )


def drives(joints: Iterable[JointFriction]) -> str:
    """Gains and offsets of the drives, where they were identified; empty when of none."""
    known = [joint.drive for joint in joints]
    units = sorted({drive.unit for drive in known if drive is not None})
    if not units:
        return ""
    columns = {
        "gain": (f"{', '.join(units)}", [math.nan if drive is None else drive.gain for drive in known]),
        "offset": ("N m", [math.nan if drive is None else drive.offset for drive in known]),
    }
    return "/* Motor torque = offset + gain * drive; NAN where it was not identified. */\n" + "".join(
        f"static const double friction_drive_{name}[FRICTION_JOINT_COUNT] = {_row(values)}; /* {unit} */\n"
        for name, (unit, values) in columns.items()
    )


def c_text(name: str) -> str:
    """A name as a string of C."""
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _matrix(name: str, values: FloatArray) -> str:
    rows = ",\n".join(f"    {_row(row)}" for row in values.tolist())
    return f"static const double {name}[FRICTION_JOINT_COUNT][FRICTION_JOINT_COUNT] = {{\n{rows}\n}};\n"


def _row(values: Sequence[float]) -> str:
    return "{" + ", ".join("NAN" if math.isnan(value) else repr(value) for value in values) + "}"
