"""Where friction is when motors move joints together: in the motors, or in joints and motors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from friction_estimator.errors import ConfigError, choices
from friction_estimator.identification.inverse_dynamics.estimation import Estimate
from friction_estimator.identification.inverse_dynamics.friction_columns import FrictionColumns
from friction_estimator.identification.inverse_dynamics.options import (
    COUPLED_FRICTION,
    JOINTS_AND_MOTORS,
    MOTORS,
    InverseDynamicsOptions,
)
from friction_estimator.identification.inverse_dynamics.torque_model import Friction
from friction_estimator.identification.rigid_body.sites import FrictionSite
from friction_estimator.laws.identified import IdentifiedParameters
from friction_estimator.robot.transmission import Transmission


def friction_motors(options: InverseDynamicsOptions, joint_names: Sequence[str]) -> Transmission:
    """The motors (n) whose friction is wanted; with ``joints_and_motors``, and without a coupling, the joints' own.

    Raises
    ------
    ConfigError
        When the place of friction is unknown, or the coupling does not fit the joints.
    """
    if options.coupled_friction not in COUPLED_FRICTION:
        raise ConfigError(
            f"unknown coupled_friction {options.coupled_friction!r}; it is one of {choices(COUPLED_FRICTION)}"
        )
    if options.coupling is None and options.coupled_friction == JOINTS_AND_MOTORS:
        raise ConfigError(f"coupled_friction {JOINTS_AND_MOTORS!r} needs the coupling of the motors")
    return Transmission.of(options.coupling if options.coupled_friction == MOTORS else None, joint_names)


def added_motors(friction: Friction) -> tuple[FrictionSite, ...]:
    """Motors that add friction to that of several joints."""
    return friction.sites[len(friction.joint_names) :] if isinstance(friction, FrictionColumns) else ()


def coupled_choices(friction: Friction, options: InverseDynamicsOptions) -> list[str]:
    """Where friction is, in a sentence; none where nothing is coupled."""
    groups = () if options.coupling is None else options.coupling.groups
    together = [
        f"{', '.join(motors)} {'moves' if len(motors) == 1 else 'move'} {', '.join(joints)}"
        for joints, motors in groups
        if len(joints) > 1
    ]
    if not together:
        return []
    if options.coupled_friction == MOTORS:
        return [
            f"friction is that of the motors ({'; '.join(together)}): parameters, torques and errors are theirs and "
            "have their names"
        ]
    added = ", ".join(site.name for site in added_motors(friction))
    return [
        f"every joint has friction, and {added} {'adds' if added.count(',') == 0 else 'add'} some to several joints"
    ]


def judged_friction(solution: Estimate, live: IdentifiedParameters) -> tuple[IdentifiedParameters, tuple[str, ...]]:
    """Friction to judge the data by, and which of it may be zero: where motors add to joints, these and those apart.

    The live law of such a joint holds what the motor adds as well as one law can; what it cannot say is no fault of
    the data.

    Parameters
    ----------
    live : one law a joint
    """
    friction = solution.model.friction
    if not isinstance(friction, FrictionColumns) or not added_motors(friction):
        return live, ()
    counts = [len(site.law.parameter_names) for site in friction.sites]
    values, covariance = np.zeros((len(counts), max(counts))), np.zeros((len(counts), max(counts), max(counts)))
    first = 0
    for row, count in enumerate(counts):
        own = slice(first, first + count)
        values[row, :count], covariance[row, :count, :count] = solution.values[own], solution.covariance[own, own]
        first += count
    rows = sum(mask.sum(axis=0) for mask in solution.usable)
    samples = np.array([(rows * (site.direction != 0.0)).max() for site in friction.sites], dtype=float)
    names, beside_motors = _names_apart(friction)
    laws, none = tuple(site.law.name for site in friction.sites), np.zeros(len(counts))
    return IdentifiedParameters(names, laws, values, covariance, none, none, samples), beside_motors


def _names_apart(friction: FrictionColumns) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names of all sites, joints without the motors that add to them, and of these joints alone."""
    added = added_motors(friction)
    names = list(friction.joint_names)
    for joint, name in enumerate(friction.joint_names):
        others = [motor.name for motor in added if motor.direction[joint] != 0.0]
        names[joint] = f"{name} without {', '.join(others)}" if others else name
    beside_motors = tuple(name for name in names if name not in friction.joint_names)
    return (*names, *(motor.name for motor in added)), beside_motors
