"""A C header for firmware and controllers: constants, a function for each law, and the coupling of motors."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from textwrap import indent, wrap

from friction_estimator.io.export.exporter import ExportedFriction, ExportRequest, ExportResult
from friction_estimator.laws.linear import LinearFrictionLaw, Shape, Side, linear_law_names, make_linear_law
from friction_estimator.robot.transmission import Transmission
from friction_estimator.types import FloatArray

_SIMPLE = ("coulomb", "viscous", "offset")
_SIGN = """\
/* Sign of a velocity; 0 and NaN stay what they are. */
static inline double friction_sign(double velocity)
{
    return velocity > 0.0 ? 1.0 : velocity < 0.0 ? -1.0 : velocity;
}
"""
_USE = (
    "friction_torque(joint, velocity, load): N m, with the sign of the velocity that it resists. Added to the torque "
    "command of a motor it compensates the friction. velocity: rad/s; load: motor torque reflected to the "
    "joint, N m (laws that do not depend on it ignore it). Prismatic joints: N and m/s. Needs C99 or C++11, and libm."
)
_COMMENT_WIDTH = 116  # lines of 120 characters with the frame of the comment


def export_c_header(request: ExportRequest) -> ExportResult:
    """Header of one robot, without anything outside of ``<math.h>``."""
    reduced = [joint for joint in request.joints if joint.law.name not in C_LAWS]
    warnings = tuple(
        f"joint {joint.joint!r}: the law {joint.law.name!r} has no C form and becomes Coulomb and viscous friction"
        + (f"; not expressed: {'; '.join(joint.coulomb_viscous.lost)}" if joint.coulomb_viscous.lost else "")
        for joint in reduced
    )
    names = identifiers([joint.joint for joint in request.joints])
    laws = {joint.law.name: joint.law.parameter_names for joint in request.joints if joint.law.name in C_LAWS}
    if reduced:
        laws["simple"] = _SIMPLE
    parts = [
        _comment((*request.origin, "", *wrap(_USE, _COMMENT_WIDTH), *warnings)),
        "#ifndef FRICTION_ESTIMATOR_FRICTION_H\n#define FRICTION_ESTIMATOR_FRICTION_H\n\n#include <math.h>\n",
        _SIGN,
        *(_law(law, parameters) for law, parameters in laws.items()),
        *(_constant(joint, name) for joint, name in zip(request.joints, names, strict=True)),
        _joints(request.joints, names),
        "".join(_dispatch(request.joints, names)),
        ""
        if request.coupling is None
        else coupled_motors(request.moved, Transmission.from_coupling(request.coupling, request.moved)),
        drives(request.joints),
        "#endif\n",
    ]
    return ExportResult("\n".join(filter(None, parts)), warnings)


def _comment(lines: Iterable[str]) -> str:
    text = (line.replace("*/", "* /").replace("/*", "/ *").replace("\\", "/") for line in lines)
    wrapped = (part for line in text for part in wrap(line, _COMMENT_WIDTH, subsequent_indent="  ") or [""])
    return "/*\n" + "".join(f" * {line}".rstrip() + "\n" for line in wrapped) + " */"


def _law(law: str, parameters: tuple[str, ...]) -> str:
    body = C_LAWS.get(law, ("return p->coulomb * friction_sign(velocity) + p->viscous * velocity + p->offset;",))
    fields = "".join(f"    double {name};\n" for name in identifiers(parameters))
    lines = [*body] if any(re.search(r"\bload\b", line) for line in body) else ["(void)load;", *body]
    return (
        f"typedef struct {{\n{fields}}} friction_{law}_t;\n\n"
        f"static inline double friction_{law}(const friction_{law}_t *p, double velocity, double load)\n"
        "{\n" + indent("".join(f"{line}\n" for line in lines), "    ") + "}\n"
    )


def _constant(joint: ExportedFriction, name: str) -> str:
    law, parameters, values = _stored(joint)
    rows = "".join(
        f"    {value!r}{',' if row + 1 < len(values) else ''} /* {parameter} */\n"
        for row, (parameter, value) in enumerate(zip(parameters, values, strict=True))
    )
    return f"static const friction_{law}_t friction_of_{name} = {{\n{rows}}};\n"


def _stored(joint: ExportedFriction) -> tuple[str, Sequence[str], list[float]]:
    """Law, names and values of the constant of a joint."""
    if joint.law.name not in C_LAWS:
        return (
            "simple",
            _SIMPLE,
            [joint.coulomb_viscous.coulomb, joint.coulomb_viscous.viscous, joint.coulomb_viscous.offset],
        )
    columns = zip(joint.law.parameter_names, joint.law.units, joint.sigma.tolist(), strict=True)
    parameters = [f"{name}{f' [{unit}]' if unit else ''}, sigma {sigma:.2g}" for name, unit, sigma in columns]
    return joint.law.name, parameters, joint.values.tolist()


def _joints(joints: Sequence[ExportedFriction], names: Sequence[str]) -> str:
    rows = "".join(f"    FRICTION_JOINT_{name} = {row},\n" for row, name in enumerate(_upper(names)))
    texts = ", ".join(_c_text(joint.joint) for joint in joints)
    return (
        f"enum {{\n{rows}    FRICTION_JOINT_COUNT = {len(names)}\n}};\n\n"
        f"static const char *const friction_joint_names[FRICTION_JOINT_COUNT] = {{{texts}}};\n"
    )


def _upper(names: Sequence[str]) -> list[str]:
    return identifiers([name.upper() for name in names])


def _dispatch(joints: Sequence[ExportedFriction], names: Sequence[str]) -> Iterator[str]:
    yield "/* Friction torque of a joint; NaN for a number that no joint has. */\n"
    yield "static inline double friction_torque(int joint, double velocity, double load)\n{\n    switch (joint) {\n"
    for joint, name, upper in zip(joints, names, _upper(names), strict=True):
        law = _stored(joint)[0]
        yield f"    case FRICTION_JOINT_{upper}: return friction_{law}(&friction_of_{name}, velocity, load);\n"
    yield "    default: return NAN;\n    }\n}\n"


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
    names = ", ".join(map(_c_text, moved))
    return (
        "/* Some of these are motors that move several joints together: friction_torque is theirs, at their own\n"
        " * velocity and torque; friction_torques is that of the joints, in this order. */\n"
        f"static const char *const friction_moved_joint_names[FRICTION_JOINT_COUNT] = {{{names}}};\n\n"
        "/* T: joint velocity = T motor velocity. */\n"
        f"{_matrix('friction_coupling', motors.matrix)}\n"
        "/* T^-T: joint torque = T^-T motor torque, motor velocity = (T^-T)^T joint velocity. */\n"
        f"{_matrix('friction_to_joints', motors.to_joints)}\n{_FUNCTION}"
    )


def drives(joints: Iterable[ExportedFriction]) -> str:
    """C text of the gains and offsets of drives that were identified; empty without any."""
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


def _c_text(name: str) -> str:
    """A name as a string of C."""
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _matrix(name: str, values: FloatArray) -> str:
    rows = ",\n".join(f"    {_row(row)}" for row in values.tolist())
    return f"static const double {name}[FRICTION_JOINT_COUNT][FRICTION_JOINT_COUNT] = {{\n{rows}\n}};\n"


def _row(values: Sequence[float]) -> str:
    return "{" + ", ".join("NAN" if math.isnan(value) else repr(value) for value in values) + "}"


_KEYWORDS = frozenset(
    "auto break case char const continue default do double else enum extern float for goto if inline int long register "
    "restrict return short signed sizeof static struct switch typedef union unsigned void volatile while bool class "
    "delete explicit export false friend mutable namespace new operator private protected public template this throw "
    "true try typename using virtual".split()
)


def identifiers(names: Sequence[str]) -> list[str]:
    """C identifiers, all different, as close to the names as C allows."""
    taken: dict[str, None] = {}
    for name in names:
        plain = re.sub(r"\W", "_", name, flags=re.ASCII) or "_"
        plain = f"_{plain}" if plain[0].isdigit() else f"{plain}_" if plain in _KEYWORDS else plain
        unique, count = plain, 2
        while unique in taken:
            unique, count = f"{plain}_{count}", count + 1
        taken[unique] = None
    return list(taken)


_SHAPES = {
    Shape.SIGN: "friction_sign(velocity)",
    Shape.TANH: "tanh(velocity / {0!r})",
    Shape.LINEAR: "velocity",
    Shape.CONSTANT: "1.0",
    Shape.FADING: "friction_sign(velocity) * exp(-fabs(velocity) / {0!r})",
    Shape.RISING: "friction_sign(velocity) * (1.0 - exp(-fabs(velocity) / {0!r}))",
}
_SIDES = {
    Side.BOTH: "",
    Side.FORWARD: " * (velocity > 0.0)",
    Side.BACKWARD: " * (velocity < 0.0)",
    Side.DRIVING: " * driving",
    Side.DRIVEN: " * (1.0 - driving)",
}


def _sum_of_terms(law: LinearFrictionLaw) -> tuple[str, ...]:
    """Body of the function of a linear law: each shape of the velocity once, then the sum of its terms."""
    shapes: dict[str, str] = {}
    terms = []
    for name, term in zip(identifiers(law.parameter_names), law.terms, strict=True):
        shape = _SHAPES[term.shape].format(float(term.scale))
        value = shapes.setdefault(shape, f"shape_{len(shapes) + 1}") if "(" in shape else shape
        terms.append(f"p->{name} * {value}{_SIDES[term.side]}{' * fabs(load)' * term.load_power}")
    driving = "const double driving = 0.5 * (1.0 + friction_sign(load) * friction_sign(velocity));"
    return (
        *(f"const double {value} = {shape};" for shape, value in shapes.items()),
        *((driving,) if any("driving" in term for term in terms) else ()),
        "return " + "\n    + ".join(terms) + ";",
    )


C_LAWS: Mapping[str, tuple[str, ...]] = {
    **{name: _sum_of_terms(make_linear_law(name)) for name in linear_law_names()},
    "load_velocity": (
        "const double direction = friction_sign(velocity);",
        "const double driving = 0.5 * (1.0 + friction_sign(load) * direction);",
        "const double fading = exp(-fabs(velocity) / p->stribeck_velocity);",
        *(
            f"const double {side} = (1.0 - fading) * (p->coulomb_{side} + p->load_{side} * fabs(load))\n"
            f"    + fading * (p->static_{side} + p->load_static_{side} * fabs(load));"
            for side in ("motor", "generator")
        ),
        "return direction * (driving * motor + (1.0 - driving) * generator) + p->viscous * velocity + p->offset;",
    ),
    "tanh_stribeck": (
        "const double relative = velocity / p->stribeck_velocity;",
        "const double bell = 1.0 + p->stribeck * exp(-relative * relative);",
        "return p->viscous * velocity + p->coulomb * tanh(p->slope * velocity) * bell + p->offset;",
    ),
    "makkar": (
        "return p->gamma_1 * (tanh(p->gamma_2 * velocity) - tanh(p->gamma_3 * velocity))",
        "    + p->gamma_4 * tanh(p->gamma_5 * velocity) + p->gamma_6 * velocity;",
    ),
    "stribeck_load": (
        "const double fading = exp(-fabs(velocity / p->stribeck_velocity));",
        "const double dry = p->coulomb + (p->static_ - p->coulomb) * fading + p->load_quadratic * load * load;",
        "return friction_sign(velocity) * dry + p->viscous * velocity;",
    ),
}
"""Friction laws in C; linear ones from their terms. A law without an entry is exported as Coulomb-viscous."""
