"""Model of the robot for gait and controller: pinocchio model, and legs with their inverse kinematics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from friction_estimator.config import Config
from friction_estimator.errors import SimulationError, choices
from friction_estimator.robot.dynamics import set_armature
from friction_estimator.robot.urdf import checked_urdf
from friction_estimator.simulation.walk_plan import WalkDimensions
from friction_estimator.types import BoolArray, FloatArray

_HIP_YAW, _HIP_ROLL, _HIP_PITCH, KNEE, ANKLE_PITCH, ANKLE_ROLL = range(6)

_AXIS_GROUPS = (((0, 1, 2), "zxy"), ((3,), "y"), ((4, 5), "yx"))  # places in the chain, and axes in any order there
_MIN_ALIGNMENT = 0.8  # cosine between a joint's axis and the coordinate axis nearest to it
_NOMINAL_TOLERANCE = 1e-6  # deviation of a leg that still counts as the nominal one [m, rad]
_POSE_TOLERANCE = 1e-11  # of Newton's method [m, rad]: second differences over a control period must be smooth
_MAX_ITERATIONS = 40  # of Newton's method
_MAX_STEP = 0.3  # of Newton's method [rad]


@dataclass(frozen=True, slots=True)
class Leg:
    """One leg of six joints: hip yaw, roll and pitch, knee, ankle pitch and roll.

    The nominal leg has its hip axes through one point and its ankle axes through another, turns right-handed about z,
    x, y, y, y, x, and is straight at zero.
    """

    joint_names: tuple[str, ...]  # (6,) in the order hip yaw, hip roll, hip pitch, knee, ankle pitch, ankle roll
    columns: NDArray[np.intp]  # (6,) indices into the actuated joints, in pinocchio order
    frame_id: int  # pinocchio index of the sole frame
    hip: FloatArray  # (3,) of the nominal leg, in the base frame [m]
    thigh: float  # length in the nominal leg [m]
    shank: float  # length in the nominal leg [m]
    sole: FloatArray  # (3,) of the sole origin from the nominal ankle, in the sole frame [m]
    signs: FloatArray  # (6,) of the axes, relative to those of the nominal leg
    zero: FloatArray  # (6,) angles of the nominal leg where the real one is at zero [rad]
    chain: _LegChain | None  # solver for a leg that deviates from the nominal one; None for the nominal leg

    @property
    def length(self) -> float:
        """Distance from hip to sole of the stretched leg [m]."""
        return self.thigh + self.shank - float(self.sole[2])

    def inverse(
        self, base: FloatArray, rotation_base: FloatArray, sole: FloatArray, rotation_sole: FloatArray
    ) -> FloatArray:
        """Joint angles that reach the given sole poses with a bent knee.

        Parameters
        ----------
        base, sole : (N, 3) origins in the world [m]
        rotation_base, rotation_sole : (N, 3, 3) to the world

        Returns
        -------
        (N, 6) angles from hip yaw to ankle roll [rad]

        Raises
        ------
        SimulationError
            When a sole pose is out of reach.
        """
        nominal, distance = self._nominal(base, rotation_base, sole, rotation_sole)
        guess = (nominal - self.zero) * self.signs
        longest = self.thigh + self.shank
        if self.chain is not None:
            angles, reached = self.chain.solve(guess, base, rotation_base, sole, rotation_sole)
        else:
            angles, reached = guess, (np.abs(self.thigh - self.shank) <= distance) & (distance <= longest)
        if not reached.all():
            raise SimulationError(
                f"a foot is {distance[~reached].max():.3f} m from its hip, the leg reaches {longest:.3f} m: "
                "shorten the steps or bend the knees more"
            )
        return angles

    def _nominal(
        self, base: FloatArray, rotation_base: FloatArray, sole: FloatArray, rotation_sole: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Angles of the nominal leg (N, 6) in closed form, stretched where it is too short, and hip-ankle distance."""
        hip = base + rotation_base @ self.hip
        ankle = sole - rotation_sole @ self.sole
        r = np.einsum("nji,nj->ni", rotation_sole, hip - ankle)  # hip relative to the ankle, in sole axes
        distance = np.linalg.norm(r, axis=1)
        cosine = (self.thigh**2 + self.shank**2 - distance**2) / (2.0 * self.thigh * self.shank)
        knee = np.pi - np.arccos(np.clip(cosine, -1.0, 1.0))
        ankle_roll = np.arctan2(r[:, 1], r[:, 2])
        tilt = np.arcsin(np.clip(self.thigh / distance * np.sin(knee), -1.0, 1.0))
        ankle_pitch = -np.arctan2(r[:, 0], np.hypot(r[:, 1], r[:, 2])) - tilt
        hip_rotation = np.swapaxes(rotation_base, 1, 2) @ rotation_sole @ _roll_pitch(-ankle_roll, -knee - ankle_pitch)
        yaw, roll, pitch = _yaw_roll_pitch(hip_rotation)
        return np.stack([yaw, roll, pitch, knee, ankle_pitch, ankle_roll], axis=1), distance


def _roll_pitch(roll: FloatArray, pitch: FloatArray) -> FloatArray:
    """``Rx(roll) Ry(pitch)``, (N, 3, 3)."""
    c, s, C, S = np.cos(roll), np.sin(roll), np.cos(pitch), np.sin(pitch)
    zero = np.zeros_like(c)
    return np.stack([C, zero, S, s * S, c, -s * C, -c * S, s, c * C], axis=1).reshape(-1, 3, 3)


def _yaw_roll_pitch(R: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Angles of ``R = Rz(yaw) Rx(roll) Ry(pitch)``."""
    yaw = np.arctan2(-R[:, 0, 1], R[:, 1, 1])
    roll = np.arctan2(R[:, 2, 1], -R[:, 0, 1] * np.sin(yaw) + R[:, 1, 1] * np.cos(yaw))
    return yaw, roll, np.arctan2(-R[:, 2, 0], R[:, 2, 2])


class _LegChain:
    """Inverse kinematics of six joints from the base to a sole, by Newton's method.

    Parameters
    ----------
    model : floating-base model
    joints : (6,) pinocchio indices of the joints, in the order of the angles
    sole_frame : name of the sole frame
    """

    def __init__(self, model: pin.Model, joints: Sequence[int], sole_frame: str) -> None:
        others = [joint for joint in range(1, model.njoints) if joint not in joints]
        self._model = pin.buildReducedModel(model, others, pin.neutral(model))
        self._data = self._model.createData()
        self._frame = self._model.getFrameId(sole_frame)
        ids = [self._model.getJointId(model.names[joint]) for joint in joints]
        self._columns: NDArray[np.intp] = np.array([self._model.idx_vs[joint] for joint in ids])

    def solve(
        self,
        guess: FloatArray,
        base: FloatArray,
        rotation_base: FloatArray,
        sole: FloatArray,
        rotation_sole: FloatArray,
    ) -> tuple[FloatArray, BoolArray]:
        """Joint angles along a path of poses.

        Parameters
        ----------
        guess : (N, 6) angles of a similar leg; from the second pose on only their changes count [rad]
        base, sole : (N, 3) origins in the world [m]
        rotation_base, rotation_sole : (N, 3, 3) to the world

        Returns
        -------
        angles : (N, 6) [rad]
        reached : (N,) False where the leg cannot reach the pose
        """
        angles = np.empty_like(guess)
        reached = np.zeros(guess.shape[0], dtype=bool)
        start = guess[0]
        for k in range(guess.shape[0]):
            target = pin.SE3(rotation_base[k], base[k]).actInv(pin.SE3(rotation_sole[k], sole[k]))
            angles[k], reached[k] = self._newton(start, target)
            if k + 1 < guess.shape[0]:
                start = (angles[k] if reached[k] else guess[k]) + guess[k + 1] - guess[k]
        return angles, reached

    def _newton(self, start: FloatArray, target: pin.SE3) -> tuple[FloatArray, bool]:
        model, data, columns = self._model, self._data, self._columns
        q = np.empty(columns.size)
        q[columns] = start
        for _ in range(_MAX_ITERATIONS):
            pin.computeJointJacobians(model, data, q)
            error = pin.log6(pin.updateFramePlacement(model, data, self._frame).actInv(target)).vector
            if np.abs(error).max() < _POSE_TOLERANCE:
                return q[columns], True
            jacobian = pin.getFrameJacobian(model, data, self._frame, pin.LOCAL)
            step = np.linalg.lstsq(jacobian, error, rcond=1e-6)[0]
            q += step * min(1.0, _MAX_STEP / np.abs(step).max())
        return q[columns], False


def _read_leg(model: pin.Model, sole_frame: str) -> Leg:
    """Measure one leg of a floating-base model at its zero configuration.

    Raises
    ------
    SimulationError
        When the frame is missing or the leg is not of the kind that the built-in gait can walk with.
    """
    if not model.existFrame(sole_frame):
        raise SimulationError(
            f"the URDF has no frame {sole_frame!r}: set the parameter `frame` of the foot to its sole"
        )
    frame_id = model.getFrameId(sole_frame)
    chain = tuple(j for j in model.supports[model.frames[frame_id].parentJoint] if j > 1)
    data = model.createData()
    pin.framesForwardKinematics(model, data, pin.neutral(model))
    jacobian = pin.computeJointJacobians(model, data, pin.neutral(model))
    joints, signs = _roles(model, chain, [jacobian[3:, model.idx_vs[j]] for j in chain], sole_frame)
    pitch, knee, ankle = (data.oMi[joints[role]].translation for role in (_HIP_PITCH, KNEE, ANKLE_PITCH))
    hip, sole = np.array([pitch[0], knee[1], pitch[2]]), data.oMf[frame_id]
    if sole.rotation.trace() < 1.0 + 2.0 * _MIN_ALIGNMENT:
        raise SimulationError(f"the sole frame {sole_frame!r} must have x forward and z up when all joints are at zero")
    thigh_pitch, shank_pitch = _pitch(knee - hip), _pitch(ankle - knee)
    sole_pitch = float(np.arctan2(sole.rotation[0, 2], sole.rotation[2, 2]))
    zero = np.array([0.0, 0.0, thigh_pitch, shank_pitch - thigh_pitch, sole_pitch - shank_pitch, 0.0])
    points = [data.oMi[j].translation for j in chain]
    meets = np.concatenate([points[1] - hip, points[2] - hip, points[0] - hip, points[5] - ankle, zero])
    axes = [jacobian[3:, model.idx_vs[j]] for j in joints]
    nominal = (
        joints == chain
        and np.allclose(axes, np.eye(3)[[2, 0, 1, 1, 1, 0]], atol=_NOMINAL_TOLERANCE)
        and np.abs(meets).max() < _NOMINAL_TOLERANCE
        and abs(float(ankle[1] - knee[1])) < _NOMINAL_TOLERANCE
        and np.allclose(sole.rotation, np.eye(3), atol=_NOMINAL_TOLERANCE)
    )
    return Leg(
        joint_names=tuple(model.names[j] for j in joints),
        columns=np.array([model.idx_vs[j] - 6 for j in joints]),
        frame_id=frame_id,
        hip=hip,
        thigh=float(np.hypot(*(knee - hip)[[0, 2]])),
        shank=float(np.hypot(*(ankle - knee)[[0, 2]])),
        sole=sole.rotation.T @ (sole.translation - ankle),
        signs=signs,
        zero=np.zeros(6) if nominal else zero,
        chain=None if nominal else _LegChain(model, joints, sole_frame),
    )


def _roles(
    model: pin.Model, chain: tuple[int, ...], axes: Sequence[FloatArray], sole_frame: str
) -> tuple[tuple[int, ...], FloatArray]:
    """Joints from hip yaw to ankle roll, and the signs of their axes."""
    joints: list[int] = []
    signs: list[float] = []
    for places, wanted in _AXIS_GROUPS if len(chain) == 6 else ():
        for axis in wanted:
            component = [axes[place]["xyz".index(axis)] for place in places]
            best = int(np.argmax(np.abs(component)))
            if abs(component[best]) > _MIN_ALIGNMENT:
                joints.append(chain[places[best]])
                signs.append(float(np.sign(component[best])))
    if len(joints) != 6:
        raise SimulationError(
            f"the built-in gait needs six joints from the base to {sole_frame!r}: three at the hip turning about z, x "
            "and y in any order, a knee about y, two at the ankle about y and x in any order; "
            f"found {[model.names[j] for j in chain]}"
        )
    return tuple(joints), np.array(signs)


def _pitch(limb: FloatArray) -> float:
    """Rotation of a hanging limb about y [rad]."""
    return float(np.arctan2(-limb[0], -limb[2]))


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
        joints = zip(self.joint_names, list(self.model.joints)[2:], strict=True)
        if other := [name for name, joint in joints if (joint.nq, joint.nv) != (1, 1)]:
            raise SimulationError(
                f"the built-in simulation needs revolute or prismatic joints; {choices(other)} of the URDF is of "
                "another type, such as continuous: make it revolute, with limits; a joint outside the legs may be "
                "locked instead: list all others in robot.joints"
            )
        self._data = self.model.createData()
        set_armature(self.model, config.robot.armature, config.robot.joints or self.joint_names)
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

    def _find_legs(self, config: Config) -> tuple[tuple[Leg, Leg], tuple[int, int]]:
        if len(config.feet) != 2:
            raise SimulationError(
                f"the built-in gait walks on two feet; feet.names lists {[foot.name for foot in config.feet]}"
            )
        legs = [_read_leg(self.model, foot.frame) for foot in config.feet]
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
