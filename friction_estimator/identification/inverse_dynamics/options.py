"""What a user may choose about the method `inverse_dynamics`."""

from __future__ import annotations

from dataclasses import dataclass, field

from friction_estimator.config.coupling import Coupling
from friction_estimator.identification.recording.zero_phase import FilterOptions
from friction_estimator.identification.regression.least_squares import SolverOptions
from friction_estimator.identification.regression.validation import FOLDS
from friction_estimator.identification.rigid_body.rigid_body_columns import RigidBodyOptions

COUPLED_FRICTION = MOTORS, JOINTS_AND_MOTORS = "motors", "joints_and_motors"
"""Where friction is when motors move joints together."""


@dataclass(frozen=True, slots=True)
class InverseDynamicsOptions:
    """How to identify.

    Attributes
    ----------
    law : linear friction law of every joint, or ``load_velocity`` (Hamon et al. 2010, eq. 25)
    joint_laws : exceptions, ``joint=law`` as of `identifier.joint_laws`; not with ``load_velocity``
    live_law : law that ``load_velocity`` is written as: itself, with the motor torque as load, or a linear law
    stribeck_velocity : q_s of ``load_velocity`` [rad/s]; None: searched, the same share of every joint's speed
    velocity_dependent : ``load_velocity`` has the exponential of eq. 29; without it, only the load counts (eq. 20)
    body : what of the rigid body is unknown
    coupling : of motors that move several joints together
    coupled_friction : ``motors``: with a coupling, friction is that of the motors, ``T^-T f(T^-1 dq)``, and named by
        them; ``joints_and_motors``: every joint has friction, and every motor that turns with several of them adds some
    temperature : dry and viscous friction change with the column ``temperature``
    harmonics : dry friction changes with cosine and sine of these multiples of the position
    solver : weights, robustness and bounds
    significance : sigma over absolute value above which inertial parameters, offsets and gains are left out; None: all
        stay
    physical : inertial parameters are moved to the nearest ones that real bodies have; whether there are such bodies is
        told in any case
    dead_zone : speed below which a joint's samples are left out [rad/s]; None: where friction no longer opposes motion
    cutoff_hz : of the parallel filter; None: from the spectrum, for every motion its own
    folds : of the validation
    filter : how velocities and accelerations are computed from a log
    """

    law: str = "coulomb_viscous"
    joint_laws: tuple[str, ...] = ()
    live_law: str = "load_velocity"
    stribeck_velocity: float | None = None
    velocity_dependent: bool = True
    body: RigidBodyOptions = field(default_factory=RigidBodyOptions)
    coupling: Coupling | None = None
    coupled_friction: str = MOTORS
    temperature: bool = False
    harmonics: tuple[float, ...] = ()
    solver: SolverOptions = field(default_factory=SolverOptions)
    significance: float | None = 0.5
    physical: bool = False
    dead_zone: float | None = None
    cutoff_hz: float | None = None
    folds: int = FOLDS
    filter: FilterOptions = field(default_factory=FilterOptions)


DEFAULT = InverseDynamicsOptions()
