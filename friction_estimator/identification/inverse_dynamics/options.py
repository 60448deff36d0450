"""Options of the method `inverse_dynamics`, and the columns of friction that they ask for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from friction_estimator.config.robot import Coupling
from friction_estimator.errors import ConfigError, InputError, choices
from friction_estimator.identification.fixed_base_model import FixedBaseModel
from friction_estimator.identification.inverse_dynamics.estimation import reference_speeds
from friction_estimator.identification.inverse_dynamics.friction_columns import FrictionColumns, waves_of
from friction_estimator.identification.inverse_dynamics.observation import WORKING_RATE, Observation, observe
from friction_estimator.identification.joint_log import TEMPERATURE
from friction_estimator.identification.linear_problem import FOLDS, SolverOptions
from friction_estimator.identification.recording.motion import Motion
from friction_estimator.identification.rigid_body import RigidBody, RigidBodyOptions
from friction_estimator.laws import laws_of_joints
from friction_estimator.laws.published import LOAD_VELOCITY
from friction_estimator.robot.transmission import Transmission

_ONE_TURN = (1.0,)
"""Friction that changes with the position: a linkage, a gear or a cable that is out of round."""
COUPLED_FRICTION = MOTORS, JOINTS_AND_MOTORS = "motors", "joints_and_motors"
"""Where friction is when motors move joints together."""
MEASURED_VELOCITY = "measured"
VELOCITIES = MEASURED_VELOCITY, "differentiated"
"""Where velocities come from."""
LATE = LATE_TORQUE, LATE_COMMAND = "torque", "command"
"""What of a drive that gets positions may act late."""


@dataclass(frozen=True, slots=True)
class InverseDynamicsOptions:
    """Options of the method `inverse_dynamics`."""

    # linear friction law of every joint, `load_velocity` (Hamon et al. 2010, eq. 25), or `auto`: chosen
    law: str = "coulomb_viscous"
    joint_laws: tuple[str, ...] = ()  # exceptions, `joint=law` as of `identifier.joint_laws`; not with `load_velocity`
    # q_s of `load_velocity` [rad/s]; None: searched, the same share of every joint's speed
    stribeck_velocity: float | None = None
    body: RigidBodyOptions = field(default_factory=RigidBodyOptions)  # what of the rigid body is unknown
    # efforts are currents, or torques times an unknown factor: the torque per unit of effort of every joint is
    # estimated, which a payload of known mass decides, or `body.known_inertia`
    drive_gains: bool = False
    coupling: Coupling | None = None  # of motors that move several joints together
    # `motors`: with a coupling, friction is that of the motors, `T^-T f(T^-1 dq)`, and named by them;
    # `joints_and_motors`: every joint has friction, and every motor that turns with several of them adds some
    coupled_friction: str = MOTORS
    temperature: bool = False  # dry and viscous friction change with the column `temperature`
    # after a reversal dry friction builds up over a distance (Dahl 1968), as in the live filter
    presliding: bool = False
    # dry friction changes with cosine and sine of these multiples of the position; None: of drives that get
    # positions, chosen, else none
    harmonics: tuple[float, ...] | None = None
    solver: SolverOptions = field(default_factory=SolverOptions)  # weights, robustness and bounds
    # relative standard deviation of the URDF's inertial parameters, infinite: not used; None: chosen
    urdf_sigma: float | None = None
    offset: bool | None = None  # constant torques are estimated that the laws lack; None: chosen
    delay: float | None = None  # by which all torques are late [s]; None: chosen
    # of a drive that gets positions, what acts late: `command`, so that its feedback is not late, or `torque`;
    # None: chosen
    late: str | None = None
    # drives that get positions hold a command until the next one comes; False: they interpolate, or compute as
    # rarely as was recorded; None: either, and sigma allows for it
    hold: bool | None = None
    # speed below which a joint's samples are left out [rad/s]; None: 0.5 % of its usual top speed
    dead_zone: float | None = None
    velocity: str | None = None  # `measured`, or `differentiated` from the positions; None: chosen
    cutoff_hz: float | None = None  # of the zero-phase filter of velocities and accelerations; None: chosen
    parallel_hz: float | None = None  # motion and torque are compared up to here; None: ten bands of the motion
    folds: int = FOLDS  # of the validation


DEFAULT = InverseDynamicsOptions()


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
        raise ConfigError(
            f"coupled_friction {options.coupled_friction!r} is for motors that move joints together: give their "
            "coupling, or robot.coupling in the robot's YAML"
        )
    return Transmission.from_coupling(options.coupling if options.coupled_friction == MOTORS else None, joint_names)


def coupled_choices(friction: FrictionColumns, options: InverseDynamicsOptions) -> list[str]:
    """A sentence about where friction is estimated, at motors or also at joints; empty where no motors are coupled."""
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
    added = ", ".join(site.name for site in friction.added)
    return [
        f"every joint has friction, and {added} {'adds' if added.count(',') == 0 else 'add'} some to several joints"
    ]


_STRIBECK_SHARE = 0.025
"""q_s before it is searched, in reference speeds: 0.03 of 1.2 rad/s in Hamon et al. 2010."""
_SLOWEST = float(np.finfo(float).eps)


def live_laws(joint_names: Sequence[str], options: InverseDynamicsOptions) -> tuple[str, ...]:
    """Law (n) that the friction of every joint, or motor, is written as."""
    if options.law == LOAD_VELOCITY.name:
        return (LOAD_VELOCITY.name,) * len(joint_names)
    return laws_of_joints(options.law, options.joint_laws, joint_names)


def observations_of(
    motions: Sequence[Motion], model: FixedBaseModel, options: InverseDynamicsOptions, rate: float = WORKING_RATE
) -> tuple[RigidBody, tuple[Observation, ...]]:
    """The rigid body with its unknown parameters, and torques and regressor columns of all motions."""
    payloads = [motion.payload for motion in motions if motion.payload is not None]
    body = RigidBody(model, options.body, options.coupling, payloads)
    motors = friction_motors(options, model.joint_names)
    return body, observe(motions, body.columns, motors, options.parallel_hz, rate)


def friction_of_options(observations: Sequence[Observation], options: InverseDynamicsOptions) -> FrictionColumns:
    """Columns of friction of the joints, or motors in their place.

    Raises
    ------
    ConfigError
        When the law is unknown, or takes no part of the options.
    InputError
        When temperatures are wanted and were not recorded.
    """
    names, adding = observations[0].motion.joint_names, None
    if options.law == LOAD_VELOCITY.name:
        beyond = options.temperature or options.harmonics or options.presliding
        if options.joint_laws or options.coupled_friction != MOTORS or beyond:
            raise ConfigError(
                f"{LOAD_VELOCITY.name!r} takes no joint_laws, temperature, harmonics, presliding or coupled_friction "
                f"{JOINTS_AND_MOTORS!r}; use a linear law"
            )
        plain = FrictionColumns(names, live_laws(names, options), stribeck=((1.0, 0.0),) * len(names))
        speeds = np.full(len(names), options.stribeck_velocity or 0.0)
        if options.stribeck_velocity is None:
            speeds = _STRIBECK_SHARE * reference_speeds(observations, plain)
        return replace(plain, stribeck=tuple((max(speed, _SLOWEST), 0.0) for speed in speeds.tolist()))
    if options.coupled_friction == JOINTS_AND_MOTORS:
        adding = options.coupling
    of_drive, waves, temperature = observations[0].commanded is not None, None, None
    harmonics = (_ONE_TURN if of_drive else ()) if options.harmonics is None else options.harmonics
    if harmonics:
        positions = np.concatenate([one.motion.position for one in observations])
        waves = waves_of(positions, harmonics).mean(axis=0)
    if options.temperature:  # F_c and F_v are about the mean of all experiments together
        if not all(TEMPERATURE in one.motion.inputs for one in observations):
            raise InputError("friction over temperature needs the column 'temperature/<joint>' in every experiment")
        everything = np.concatenate([one.motion.inputs[TEMPERATURE] for one in observations])
        if not np.isfinite(everything).all():
            raise InputError("friction over temperature needs the temperature of every joint at every sample")
        temperature = everything.mean(axis=0)
    laws = live_laws(names, options)
    return FrictionColumns(names, laws, adding, (), temperature, harmonics, waves, options.presliding)
