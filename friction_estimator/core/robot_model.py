"""The only room that talks to pinocchio: names to indices, and all dynamics of one sample in one update."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from friction_estimator.core.base.rotations import cross, skew
from friction_estimator.core.config import Config
from friction_estimator.core.exceptions import RobotModelError, choices
from friction_estimator.core.motor_side import MotorSide
from friction_estimator.core.types import GRAVITY, BoolArray, Dynamics, FloatArray


class RobotModel:
    """A robot from its URDF and configuration.

    Parameters
    ----------
    config : uses ``robot``, ``imu`` and ``feet``
    urdf_xml : text of the URDF

    Raises
    ------
    RobotModelError
        When the URDF cannot be read, or a joint or frame of the configuration is not in it.

    Attributes
    ----------
    joint_names : (n) names in the order of every joint array of the package (the order of the URDF tree)
    foot_names : (k) names in the order of every foot array
    base_dofs : 6, or 0 for a fixed base
    mass : total mass [kg]
    imu_position_in_base : (3,) r_I of the paper [m]
    rotation_imu_to_base : (3, 3) A_I^b of the paper
    limb : (k, n) True where a joint lies between the base and that foot
    effort_limit : (n,) of the motors by the URDF, infinite where it gives none [N m]
    coupled : (n, n) True where the mass matrix couples two joints (one is an ancestor of the other)
    motors : that move the joints
    """

    def __init__(self, config: Config, urdf_xml: str) -> None:
        self._model = _build_model(config, urdf_xml)
        _check_joints(self._model, 1 if config.robot.fixed_base else 2)
        self._data = self._model.createData()
        first_joint = 1 if config.robot.fixed_base else 2
        self.base_dofs = 0 if config.robot.fixed_base else 6
        self.joint_names = tuple(self._model.names[first_joint:])
        self.foot_names = tuple(foot.name for foot in config.feet)
        self.mass = float(pin.computeTotalMass(self._model))
        if not self.mass > 0.0:
            raise RobotModelError(
                "the links of the URDF have no mass, so there are no dynamics to compare torques with"
            )
        self.motors = MotorSide.of(config.robot.coupling.coupling(), self.joint_names)
        self._set_armature(config)
        self._foot_frames = [self._frame_id(foot.frame, f"feet.{foot.name}.frame") for foot in config.feet]
        self._place_imu(config)
        self._map_joint_positions(first_joint)
        self.limb = self._limbs(first_joint)
        for foot, joints in zip(config.feet, self.limb, strict=True):
            if not joints.any():
                raise RobotModelError(
                    f"feet.{foot.name}.frame = {foot.frame!r} hangs on no joint of robot.joints: "
                    "list the joints of its limb, or leave the foot out"
                )
        self.coupled = self._couplings(first_joint)
        limit = np.array(self._model.effortLimit[self.base_dofs :])
        self.effort_limit: FloatArray = np.where(limit > 0.0, limit, np.inf)
        self._lower = np.tril_indices(self._model.nv, -1)
        self._no_acceleration = np.zeros(self._model.nv)
        self._link_errors = np.array(
            [_link_error_basis(inertia) for inertia in list(self._model.inertias)[first_joint:]]
        )

    @property
    def weight(self) -> float:
        """Weight in standard gravity [N]."""
        return self.mass * GRAVITY

    def update(
        self, position: FloatArray, velocity: FloatArray, angular_velocity: FloatArray, specific_force: FloatArray
    ) -> Dynamics:
        """Compute all dynamic quantities of one sample.

        Parameters
        ----------
        position, velocity : (n,) of the joints
        angular_velocity : (3,) of the base, base axes [rad/s]; not used for a fixed base
        specific_force : (3,) at the IMU origin, base axes [m/s^2]; not used for a fixed base
        """
        model, data = self._model, self._data
        q = self._configuration(position)
        v = np.zeros(model.nv)
        v[self.base_dofs :] = velocity
        if self.base_dofs:
            v[:3] = cross(self.imu_position_in_base, angular_velocity)
            v[3:6] = angular_velocity
            model.gravity.linear = -specific_force
        gravity = pin.computeGeneralizedGravity(model, data, q)
        momentum_bias = pin.computeCoriolisMatrix(model, data, q, v).T @ v - gravity
        pin.computeAllTerms(model, data, q, v)
        mass_matrix = data.M.copy()  # pinocchio fills the upper triangle
        mass_matrix[self._lower] = mass_matrix.T[self._lower]
        bias = data.nle.copy()
        com, com_velocity = data.com[0].copy(), data.vcom[0] - self._rigid_velocity(v, data.com[0])
        pin.forwardKinematics(model, data, q, v, self._no_acceleration)
        pin.updateFramePlacements(model, data)
        placements = [data.oMf[frame] for frame in self._foot_frames]
        return Dynamics(
            velocity=v,
            mass_matrix=mass_matrix,
            bias=bias,
            momentum_bias=momentum_bias,
            foot_jacobian=self._stack(
                [pin.getFrameJacobian(model, data, frame, pin.LOCAL) for frame in self._foot_frames], (6, model.nv)
            ),
            foot_bias_acceleration=self._stack(
                [
                    pin.getFrameClassicalAcceleration(model, data, frame, pin.LOCAL).vector
                    for frame in self._foot_frames
                ],
                (6,),
            ),
            foot_position_in_base=self._stack([placement.translation for placement in placements], (3,)),
            foot_rotation_to_base=self._stack([placement.rotation for placement in placements], (3, 3)),
            com_in_base=com,
            com_velocity_in_base=com_velocity,
        )

    def link_error_columns(
        self,
        position: FloatArray,
        dynamics: Dynamics,
        angular_acceleration: FloatArray,
        joint_acceleration: FloatArray,
    ) -> FloatArray:
        """Torque that errors of the links' inertial parameters add to every joint.

        Must follow :meth:`update` with the same sample. Columns of the inverse dynamic model, linear in the inertial
        parameters: a relative error of a link's mass, which scales its inertia too, and shifts of its centre of mass.

        Parameters
        ----------
        angular_acceleration : (3,) of the base, base axes [rad/s^2]; not used for a fixed base
        joint_acceleration : (n,)

        Returns
        -------
        (n, n, 4) torque on joint i per error of the link behind joint j: mass [1], centre of mass x, y, z [m] in the
        axes of joint j
        """
        acceleration = self._no_acceleration.copy()
        acceleration[self.base_dofs :] = joint_acceleration
        if self.base_dofs:
            acceleration[:3] = cross(self.imu_position_in_base, angular_acceleration)
            acceleration[3:6] = angular_acceleration
        regressor = pin.computeJointTorqueRegressor(
            self._model, self._data, self._configuration(position), dynamics.velocity, acceleration
        )
        n = len(self.joint_names)
        regressor = np.atleast_2d(regressor)  # pinocchio gives a vector where there is a single row
        own = regressor[self.base_dofs :, -10 * n :].reshape(n, n, 10)
        return np.asarray((own[:, :, None, :] @ self._link_errors)[:, :, 0])

    def inverse_dynamics_derivatives(
        self, position: FloatArray, dynamics: Dynamics, acceleration: FloatArray, wrenches: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Derivatives of ``H a + b - J^T F`` with respect to joint positions and generalised velocities.

        Must follow :meth:`update` with the same sample. Wrenches stay fixed in their sole frames.

        Parameters
        ----------
        acceleration : (nv,) generalised acceleration
        wrenches : (k, 6) of the ground on the feet, sole frames

        Returns
        -------
        by_position : (nv, n)
        by_velocity : (nv, nv)
        """
        forces = [pin.Force.Zero() for _ in range(self._model.njoints)]
        for frame_id, wrench in zip(self._foot_frames, wrenches, strict=True):
            frame = self._model.frames[frame_id]
            forces[frame.parentJoint] += frame.placement.act(pin.Force(wrench))
        external = pin.StdVec_Force(forces)
        by_position, by_velocity, _ = pin.computeRNEADerivatives(
            self._model, self._data, self._configuration(position), dynamics.velocity, acceleration, external
        )
        return by_position[:, self.base_dofs :].copy(), by_velocity.copy()

    def foot_acceleration_derivatives(
        self, position: FloatArray, dynamics: Dynamics, acceleration: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Derivatives of the soles' classical acceleration, sole axes, w.r.t. joint positions and velocities.

        Returns
        -------
        by_position : (k, 6, n)
        by_velocity : (k, 6, nv)
        """
        model, data = self._model, self._data
        pin.computeForwardKinematicsDerivatives(
            model, data, self._configuration(position), dynamics.velocity, acceleration
        )
        by_position: list[FloatArray] = []
        by_velocity: list[FloatArray] = []
        for foot, frame in enumerate(self._foot_frames):
            v_q, a_q, a_v, a_a = pin.getFrameAccelerationDerivatives(model, data, frame, pin.LOCAL)
            motion = pin.getFrameVelocity(model, data, frame, pin.LOCAL)
            jacobian = dynamics.foot_jacobian[foot]
            # classical = spatial + [omega x v, 0]; the product rule adds the derivatives of omega and v
            omega, linear = skew(motion.angular), skew(motion.linear)
            for parts, spatial, velocity_derivative in ((by_position, a_q, v_q), (by_velocity, a_v, jacobian)):
                classical = spatial.copy()
                classical[:3] += omega @ velocity_derivative[:3] - linear @ velocity_derivative[3:]
                parts.append(classical)
        n = self._model.nv - self.base_dofs
        return (
            self._stack([part[:, self.base_dofs :] for part in by_position], (6, n)),
            self._stack(by_velocity, (6, self._model.nv)),
        )

    def _configuration(self, position: FloatArray) -> FloatArray:
        q = self._neutral.copy()
        q[self._simple_q] = position[self._simple]
        if self._unbounded.size:
            q[self._unbounded_q] = np.cos(position[self._unbounded])
            q[self._unbounded_q + 1] = np.sin(position[self._unbounded])
        return q

    def _rigid_velocity(self, v: FloatArray, point: FloatArray) -> FloatArray:
        if not self.base_dofs:
            return np.zeros(3)
        return v[:3] + cross(v[3:6], point)

    @staticmethod
    def _stack(arrays: list[FloatArray], shape: tuple[int, ...]) -> FloatArray:
        return np.array(arrays) if arrays else np.zeros((0, *shape))

    def _frame_id(self, name: str, parameter: str) -> int:
        if not self._model.existFrame(name):
            frames = {frame.name for frame in self._model.frames if frame.type == pin.FrameType.BODY}
            raise RobotModelError(f"{parameter} = {name!r} is not in the URDF; its links are {choices(frames)}")
        return int(self._model.getFrameId(name))

    def _place_imu(self, config: Config) -> None:
        self.imu_position_in_base: FloatArray = np.zeros(3)
        self.rotation_imu_to_base: FloatArray = np.eye(3)
        if config.robot.fixed_base:
            return
        frame = self._model.frames[self._frame_id(config.imu.frame, "imu.frame")]
        if frame.parentJoint != 1:
            raise RobotModelError(
                f"imu.frame = {config.imu.frame!r} moves with joint {self._model.names[frame.parentJoint]!r}; "
                "the IMU must be on the trunk, rigidly connected to the root link of the URDF"
            )
        self.imu_position_in_base = frame.placement.translation.copy()
        self.rotation_imu_to_base = frame.placement.rotation.copy()

    def _set_armature(self, config: Config) -> None:
        armature = config.robot.armature
        if not armature:
            return
        if len(armature) != len(config.robot.joints):
            raise RobotModelError(
                f"robot.armature has {len(armature)} values but robot.joints has {len(config.robot.joints)} names; "
                "give one value for each of robot.joints"
            )
        inertia = np.zeros(self._model.nv)
        for name, value in zip(config.robot.joints, armature, strict=True):
            inertia[self._model.joints[self._model.getJointId(name)].idx_v] = value
        self._model.armature = inertia

    def _map_joint_positions(self, first_joint: int) -> None:
        joints = [self._model.joints[index] for index in range(first_joint, self._model.njoints)]
        unbounded = np.array([joint.nq == 2 for joint in joints], dtype=bool)
        first_q = np.array([joint.idx_q for joint in joints], dtype=int)
        self._simple, self._unbounded = np.flatnonzero(~unbounded), np.flatnonzero(unbounded)
        self._simple_q, self._unbounded_q = first_q[~unbounded], first_q[unbounded]
        self._neutral = pin.neutral(self._model)

    def _limbs(self, first_joint: int) -> BoolArray:
        limb = np.zeros((len(self._foot_frames), len(self.joint_names)), dtype=bool)
        for foot, frame in enumerate(self._foot_frames):
            for joint in self._model.supports[self._model.frames[frame].parentJoint]:
                if joint >= first_joint:
                    limb[foot, joint - first_joint] = True
        return limb

    def _couplings(self, first_joint: int) -> BoolArray:
        n = len(self.joint_names)
        coupled = np.zeros((n, n), dtype=bool)
        for joint in range(n):
            for ancestor in self._model.supports[joint + first_joint]:
                if ancestor >= first_joint:
                    coupled[joint, ancestor - first_joint] = coupled[ancestor - first_joint, joint] = True
        return coupled


def _build_model(config: Config, urdf_xml: str) -> pin.Model:
    try:
        if config.robot.fixed_base:
            model = pin.buildModelFromXML(urdf_xml)
        else:
            model = pin.buildModelFromXML(urdf_xml, pin.JointModelFreeFlyer())
    except (ValueError, RuntimeError) as error:
        raise RobotModelError(f"the URDF cannot be read: {error}") from None
    wanted = config.robot.joints
    if not wanted:
        return model
    first_joint = 1 if config.robot.fixed_base else 2
    movable = list(model.names[first_joint:])
    missing = [name for name in wanted if name not in movable]
    if missing:
        raise RobotModelError(
            f"robot.joints names {choices(missing)}, not in the URDF; its movable joints are {choices(movable)}"
        )
    locked = [model.getJointId(name) for name in movable if name not in wanted]
    return pin.buildReducedModel(model, locked, pin.neutral(model)) if locked else model


def _link_error_basis(inertia: pin.Inertia) -> FloatArray:
    """Dynamic parameters (10, 4) of a link per relative error of its mass, and per shift of its centre of mass [m]."""
    basis = np.zeros((10, 4))
    basis[:, 0] = inertia.toDynamicParameters()
    basis[1:4, 1:] = inertia.mass * np.eye(3)
    lever = skew(inertia.lever)
    for axis in range(3):
        unit = skew(np.eye(3)[axis])
        turned = -inertia.mass * (lever @ unit + unit @ lever)
        basis[4:, 1 + axis] = turned[[0, 0, 1, 0, 1, 2], [0, 1, 1, 2, 2, 2]]
    return basis


def _check_joints(model: pin.Model, first_joint: int) -> None:
    if model.njoints <= first_joint:
        raise RobotModelError("the URDF has no movable joint, so there is no friction to estimate")
    for index in range(first_joint, model.njoints):
        if model.joints[index].nv != 1:
            raise RobotModelError(
                f"joint {model.names[index]!r} has {model.joints[index].nv} degrees of freedom; "
                "only revolute, continuous and prismatic joints have a friction torque, "
                "so leave it out of robot.joints"
            )
