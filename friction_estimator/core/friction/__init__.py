"""Friction laws and their recursive identification."""

from friction_estimator.core.friction import coulomb_viscous, makkar, stribeck_load
from friction_estimator.core.friction.law import (
    FrictionLaw,
    LinearFrictionLaw,
    law_names,
    make_law,
    make_linear_law,
    register_law,
)

__all__ = [
    "FrictionLaw",
    "LinearFrictionLaw",
    "coulomb_viscous",
    "law_names",
    "make_law",
    "make_linear_law",
    "makkar",
    "register_law",
    "stribeck_load",
]
