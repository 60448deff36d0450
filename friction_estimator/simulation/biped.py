"""Model of the robot for gait and controller: pinocchio model and legs."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from friction_estimator.config import Config
from friction_estimator.errors import SimulationError, choices
from friction_estimator.robot.urdf import checked_urdf
from friction_estimator.simulation.leg import Leg, read_leg
from friction_estimator.simulation.walk_plan import WalkDimensions
from friction_estimator.types import FloatArray

_LIMIT_MARGIN = 0.05  # of the posture to the joint limits [rad]
_MIN_INERTIA = 1e-9  # about a joint that moves a mass [kg m^2]


class Biped:
    """Pinocchio model with a free base, and two legs that the built-in gait can walk with.

    Attributes
    ----------
    model : floating-base model, rotor inertias of ``Config.robot.armature`` included
    joint_names : (m,) all movable joints, in pinocchio order
    locked_joints : joints that stay at zero, as for the estimator: outside of the legs and of ``Config.robot.joints``
    posture : (m,) where the joints outside of the legs are held: at zero, or as near as their limits allow [rad]
    posture_limits : (2, m) lowest and highest positions that keep a margin to the joint limits [rad]
    others : indices of the joints outside the legs
    legs : left and right
    feet : (2,) index into ``Config.feet`` of the left and the right foot
    effort_limit : (m,) [N m]
    """

    def __init__(self, config: Config, urdf_xml: str) -> None:
        try:
            self.model = pin.buildModelFromXML(checked_urdf(urdf_xml), pin.JointModelFreeFlyer())
        except (ValueError, RuntimeError) as error:
            raise SimulationError(f"pinocchio cannot read the URDF: {error}") from None
        self.locked_joints = self._lock(config)
        self.joint_names = tuple(self.model.names[2:])
        if self.model.nv != 6 + len(self.joint_names) or self.model.nq != 7 + len(self.joint_names):
            raise SimulationError("the built-in simulation needs joints with one angle each; found another kind")
        self._data = self.model.createData()
        self._set_armature(config)
        self.legs, self.feet = self._find_legs(config)
        self.posture_limits = _posture_limits(self.model)
        self.posture: FloatArray = np.clip(0.0, *self.posture_limits)
        of_legs = np.concatenate([leg.columns for leg in self.legs])
        self.others = np.setdiff1d(np.arange(len(self.joint_names)), of_legs)
        limit = np.array(self.model.effortLimit[6:])
        self.effort_limit: FloatArray = np.where(limit > 0.0, limit, np.inf)

    @property
    def mass(self) -> float:
        """Total mass [kg]."""
        return float(pin.computeTotalMass(self.model))

    @property
    def gravity(self) -> float:
        """Size of the gravity vector [m/s^2]."""
        return float(np.linalg.norm(self.model.gravity.linear))

    def column(self, joint: str) -> int:
        """Index of an actuated joint by name.

        Raises
        ------
        SimulationError
            When the URDF has no such joint.
        """
        if joint not in self.joint_names:
            raise SimulationError(f"the URDF has no movable joint {joint!r}; it has {choices(self.joint_names)}")
        return self.joint_names.index(joint)

    def joint_inertia(self) -> tuple[FloatArray, FloatArray]:
        """Inertia about each joint at zero while all others are held, and while all others are free (m,) [kg m^2].

        Raises
        ------
        SimulationError
            When a joint moves no mass.
        """
        mass_matrix = pin.crba(self.model, self.model.createData(), pin.neutral(self.model))
        mass_matrix = np.triu(mass_matrix) + np.triu(mass_matrix, 1).T
        idle = np.diag(mass_matrix)[6:] < _MIN_INERTIA
        if idle.any():
            raise SimulationError(
                f"the joints {choices(name for name, is_idle in zip(self.joint_names, idle, strict=True) if is_idle)} "
                "move no mass: list only the joints that do in robot.joints"
            )
        return np.diag(mass_matrix)[6:], 1.0 / np.diag(np.linalg.inv(mass_matrix))[6:]

    def com(self, q: FloatArray) -> FloatArray:
        """Centre of mass of a configuration (nq,) in the world (3,) [m]."""
        return np.array(pin.centerOfMass(self.model, self._data, q))

    def dimensions(self, leg_extension: float) -> WalkDimensions:
        """Dimensions of the robot that stands upright, its knees bent so that the hips are at walking height."""
        left, right = self.legs
        base_height = leg_extension * left.length - float(left.hip[2])
        base = np.array([[0.0, 0.0, base_height]])
        upright = np.eye(3)[None]
        q = pin.neutral(self.model)
        q[2], q[7:] = base_height, self.posture
        for leg in self.legs:
            sole = np.array([[leg.hip[0], leg.hip[1], 0.0]])
            q[7 + leg.columns] = leg.inverse(base, upright, sole, upright)[0]
        com = self.com(q)
        return WalkDimensions(
            half_width=0.5 * float(left.hip[1] - right.hip[1]),
            base_height=base_height,
            com_height=float(com[2]),
            com_to_base=-com[:2],
            leg_length=left.length,
            gravity=self.gravity,
        )

    def _lock(self, config: Config) -> tuple[str, ...]:
        """Lock the joints that are neither in a leg nor in ``robot.joints``; return their names."""
        if not config.robot.joints:
            return ()
        legs = {name for leg in self._find_legs(config)[0] for name in leg.joint_names}
        locked = tuple(name for name in self.model.names[2:] if name not in legs | set(config.robot.joints))
        indices = [self.model.getJointId(name) for name in locked]
        self.model = pin.buildReducedModel(self.model, indices, pin.neutral(self.model))
        return locked

    def _set_armature(self, config: Config) -> None:
        names = config.robot.joints or self.joint_names
        armature = config.robot.armature
        if armature and len(armature) != len(names):
            raise SimulationError(f"robot.armature has {len(armature)} values for {len(names)} joints")
        for name, inertia in zip(names, armature, strict=False):
            self.model.armature[6 + self.column(name)] = inertia

    def _find_legs(self, config: Config) -> tuple[tuple[Leg, Leg], tuple[int, int]]:
        if len(config.feet) != 2:
            raise SimulationError(
                f"the built-in gait walks on two feet; feet.names lists {[foot.name for foot in config.feet]}"
            )
        legs = [read_leg(self.model, foot.frame) for foot in config.feet]
        if legs[0].hip[1] * legs[1].hip[1] >= 0.0:
            raise SimulationError("the built-in gait needs one leg on the left and one on the right of the base")
        left = 0 if legs[0].hip[1] > 0.0 else 1
        return (legs[left], legs[1 - left]), (left, 1 - left)


def _posture_limits(model: pin.Model) -> FloatArray:
    """Joint limits without a margin, so that no joint rests on a stop, and at most half a turn (2, m)."""
    limits = np.array([model.lowerPositionLimit[7:], model.upperPositionLimit[7:]])
    lower, upper = np.clip(limits, -np.pi, np.pi)
    margin = np.minimum(_LIMIT_MARGIN, 0.5 * (upper - lower))
    return np.stack([lower + margin, upper - margin])
