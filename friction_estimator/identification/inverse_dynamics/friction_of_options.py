"""Which columns of friction the options ask for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from friction_estimator.errors import ConfigError, InputError, choices
from friction_estimator.identification.inverse_dynamics.dead_zone import reference_speeds
from friction_estimator.identification.inverse_dynamics.friction_columns import FrictionColumns
from friction_estimator.identification.inverse_dynamics.load_velocity_friction import (
    LOAD_VELOCITY,
    LoadVelocityFriction,
)
from friction_estimator.identification.inverse_dynamics.observation import Observation
from friction_estimator.identification.inverse_dynamics.options import (
    JOINTS_AND_MOTORS,
    MOTORS,
    InverseDynamicsOptions,
)
from friction_estimator.identification.inverse_dynamics.torque_model import Friction
from friction_estimator.identification.recording.motion import TEMPERATURE
from friction_estimator.identification.rigid_body.sites import friction_sites
from friction_estimator.laws import laws_of_joints, linear_law_names
from friction_estimator.types import FloatArray

_STRIBECK_SHARE = 0.025
"""q_s before it is searched, in reference speeds: 0.03 of 1.2 rad/s in Hamon et al. 2010."""


def live_laws(joint_names: Sequence[str], options: InverseDynamicsOptions) -> tuple[str, ...]:
    """Law (n) that the friction of every joint, or motor, is written as."""
    if options.law == LOAD_VELOCITY:
        return (options.live_law,) * len(joint_names)
    return laws_of_joints(options.law, options.joint_laws, joint_names)


def friction_of_options(
    joint_names: Sequence[str], observations: Sequence[Observation], options: InverseDynamicsOptions
) -> Friction:
    """Columns of friction.

    Parameters
    ----------
    joint_names : (n) joints, or motors that are seen in their place
    observations : that tell their usual speeds and temperatures

    Raises
    ------
    ConfigError
        When the law is unknown, or takes no part of the options.
    InputError
        When temperatures are wanted and were not recorded.
    """
    names = tuple(joint_names)
    if options.law == LOAD_VELOCITY:
        return _load_velocity(names, observations, options)
    if options.law not in linear_law_names():
        known = choices((LOAD_VELOCITY, *linear_law_names()))
        raise ConfigError(f"inverse dynamics cannot identify the law {options.law!r}; it can {known}")
    adding = options.coupling if options.coupled_friction == JOINTS_AND_MOTORS else None
    sites = friction_sites(names, live_laws(names, options), adding)
    return FrictionColumns(names, sites, _mean_temperature(observations, options), options.harmonics)


def _load_velocity(
    names: tuple[str, ...], observations: Sequence[Observation], options: InverseDynamicsOptions
) -> LoadVelocityFriction:
    if options.joint_laws or options.coupled_friction != MOTORS or options.temperature or options.harmonics:
        raise ConfigError(
            f"{LOAD_VELOCITY!r} takes no joint_laws, temperature, harmonics or coupled_friction "
            f"{JOINTS_AND_MOTORS!r}; use a linear law"
        )
    plain = LoadVelocityFriction(names, np.ones(len(names)), options.velocity_dependent)
    start = (
        _STRIBECK_SHARE * reference_speeds(observations, plain)
        if options.stribeck_velocity is None
        else np.full(len(names), options.stribeck_velocity)
    )
    return LoadVelocityFriction(names, np.maximum(start, np.finfo(float).eps), options.velocity_dependent)


def _mean_temperature(observations: Sequence[Observation], options: InverseDynamicsOptions) -> FloatArray | None:
    """Mean temperature (n,) of all experiments together, which F_c and F_v are then about."""
    if not options.temperature:
        return None
    if not all(TEMPERATURE in one.motion.inputs for one in observations):
        raise InputError("friction over temperature needs the column 'temperature/<joint>' in every experiment")
    everything = np.concatenate([one.motion.inputs[TEMPERATURE] for one in observations])
    if not np.isfinite(everything).all():
        raise InputError("friction over temperature needs the temperature of every joint at every sample")
    return np.asarray(everything.mean(axis=0))
