"""Friction laws: tables of terms, curves with a shape, and their registry."""

from friction_estimator.laws import published
from friction_estimator.laws.joint_laws import JointLaws, laws_of_joints
from friction_estimator.laws.law import FrictionLaw, Parameter, Role, law_names, make_law, register_law
from friction_estimator.laws.linear import LinearFrictionLaw, Shape, Side, Term, linear_law_names, make_linear_law

__all__ = [
    "FrictionLaw",
    "JointLaws",
    "LinearFrictionLaw",
    "Parameter",
    "Role",
    "Shape",
    "Side",
    "Term",
    "law_names",
    "laws_of_joints",
    "linear_law_names",
    "make_law",
    "make_linear_law",
    "published",
    "register_law",
]
