"""Friction laws and their recursive identification."""

from friction_estimator.core.friction import (
    asymmetric,
    coulomb_viscous,
    load_quadrants,
    load_velocity,
    makkar,
    six_slope,
    six_slope_load,
    stribeck_load,
    tanh_load,
    tanh_stribeck,
    three_slope,
)
from friction_estimator.core.friction.joint_laws import JointLaws, laws_of_joints
from friction_estimator.core.friction.law import (
    FrictionLaw,
    LinearFrictionLaw,
    NonlinearFrictionLaw,
    law_names,
    linear_law_names,
    make_law,
    make_linear_law,
    register_law,
)

__all__ = [
    "FrictionLaw",
    "JointLaws",
    "LinearFrictionLaw",
    "NonlinearFrictionLaw",
    "asymmetric",
    "coulomb_viscous",
    "six_slope",
    "six_slope_load",
    "law_names",
    "laws_of_joints",
    "linear_law_names",
    "load_quadrants",
    "load_velocity",
    "make_law",
    "make_linear_law",
    "makkar",
    "register_law",
    "stribeck_load",
    "tanh_load",
    "tanh_stribeck",
    "three_slope",
]
