"""Where friction and drive inertia act: joints, and motors that move several of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from friction_estimator.config.coupling import Coupling
from friction_estimator.laws import LinearFrictionLaw, make_linear_law
from friction_estimator.types import FloatArray


@dataclass(frozen=True, slots=True)
class FrictionSite:
    """Where friction acts: a joint, or a motor that moves several joints.

    Attributes
    ----------
    name : of the joint or the motor
    law : of its friction
    direction : (n) velocity of the site is ``direction @ dq``; its friction f acts on the joints as ``direction * f``
    """

    name: str
    law: LinearFrictionLaw
    direction: FloatArray


def friction_sites(
    joint_names: Sequence[str], law_names: Sequence[str], coupling: Coupling | None = None
) -> tuple[FrictionSite, ...]:
    """A site for every joint, and one for every motor that turns with more than one of them (a coupled wrist).

    A motor that turns with one joint only needs none: its friction cannot be told from the joint's.

    Parameters
    ----------
    joint_names, law_names : (n)
    coupling : of some or all of the joints; None: every joint has its motor
    """
    sites = [
        FrictionSite(name, make_linear_law(law), row)
        for name, law, row in zip(joint_names, law_names, np.eye(len(joint_names)), strict=True)
    ]
    if coupling is not None:
        places = [list(joint_names).index(name) for name in coupling.joint_names]
        inverse = np.linalg.inv(coupling.matrix)
        inverse[np.abs(inverse) < 1e-12 * np.abs(inverse).max()] = 0.0
        for motor, row in zip(coupling.motor_names, inverse, strict=True):
            if np.count_nonzero(row) > 1:
                direction = np.zeros(len(joint_names))
                direction[places] = row
                law = law_names[places[int(np.argmax(np.abs(row)))]]
                sites.append(FrictionSite(motor, make_linear_law(law), direction))
    return tuple(sites)


def drive_inertia_columns(
    joint_names: Sequence[str], acceleration: FloatArray, coupling: Coupling | None = None
) -> tuple[tuple[str, ...], FloatArray]:
    """Names and columns (N, n, m) of the inertia of the drives, Ia of Hamon et al. 2010, eq. 9, seen at the joint.

    Parameters
    ----------
    acceleration : (N, n) [rad/s^2]
    coupling : drives turn with the motors' accelerations, and act on the joints through the coupling
    """
    directions = np.eye(len(joint_names))
    names = list(joint_names)
    if coupling is not None:
        places = [list(joint_names).index(name) for name in coupling.joint_names]
        directions[np.ix_(places, places)] = np.linalg.inv(coupling.matrix)
        for place, motor in zip(places, coupling.motor_names, strict=True):
            names[place] = motor
    columns = np.einsum("mi,mj,ti->tjm", directions, directions, acceleration)
    return tuple(f"Ia {name}" for name in names), np.asarray(columns)
