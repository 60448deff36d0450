"""The friction laws in C: one expression a law, over its parameters ``p->...``, ``velocity`` and ``load``.

Every number in them comes from the Python law. A law without a line here is exported as Coulomb and viscous friction.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from friction_estimator.laws.linear import (
    SIX_SLOPE,
    STRIBECK_VELOCITY,
    TANH_LOAD,
    THREE_SLOPE,
    LinearFrictionLaw,
    Shape,
)

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


def _tangents(law: LinearFrictionLaw) -> str:
    """The parameters times the tangents of a law that do not depend on the load, and the viscous friction."""
    tangents = [term for term in law.terms if term.shape == Shape.TANH and not term.load_power]
    names = identifiers(tuple(term.name for term in tangents))
    terms = [f"p->{name} * tanh(velocity / {term.scale!r})" for name, term in zip(names, tangents, strict=True)]
    return "\n    + ".join(("return p->viscous * velocity", *terms))


def _load(velocity: float) -> str:
    """Dry friction that grows with the load, from this velocity on [rad/s]."""
    factor = "fabs(load) * (p->load_linear + p->load_quadratic * fabs(load))"
    return f"\n    + tanh(velocity / {velocity!r}) * {factor}"


_SIX_SLOPE = _tangents(SIX_SLOPE)
_LOAD_SCALE = TANH_LOAD.terms[-1].scale

C_LAWS: Mapping[str, tuple[str, ...]] = {
    "coulomb_viscous": ("return p->coulomb * friction_sign(velocity) + p->viscous * velocity;",),
    "three_slope": (f"{_tangents(THREE_SLOPE)};",),
    "tanh_load": (f"{_tangents(TANH_LOAD)}{_load(_LOAD_SCALE)};",),
    "six_slope": (f"{_SIX_SLOPE};",),
    "six_slope_load": (f"{_SIX_SLOPE}{_load(_LOAD_SCALE)};",),
    "load_quadrants": (
        "const double direction = friction_sign(velocity);",
        "const double driving = 0.5 * (1.0 + friction_sign(load) * direction);",
        "const double dry = driving * (p->coulomb_motor + p->load_motor * fabs(load))",
        "    + (1.0 - driving) * (p->coulomb_generator + p->load_generator * fabs(load));",
        "return direction * dry + p->viscous * velocity + p->offset;",
    ),
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
    "asymmetric": (
        "if (velocity > 0.0) return p->coulomb_positive + p->viscous_positive * velocity;",
        "if (velocity < 0.0) return -p->coulomb_negative + p->viscous_negative * velocity;",
        "return velocity;",
    ),
    "asymmetric_stribeck": (
        "const double direction = friction_sign(velocity);",
        f"const double fading = exp(-fabs(velocity) / {float(STRIBECK_VELOCITY)!r});",
        "const double starting = velocity > 0.0 ? p->static_positive : p->static_negative;",
        "return direction * (p->coulomb * (1.0 - fading) + starting * fading) + p->viscous * velocity;",
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
