"""Names to indices, and all dynamics of one sample in one pass of pinocchio.

Every method is a function of its arguments. With a floating base the model has no gravity: seen from the frame that
moves with the IMU, gravity is minus the measured specific force f, and by the equivalence principle its generalised
force is ``H[:, :3] f``.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import SubElement

import numpy as np
import pinocchio as pin
from pinocchio.rpy import matrixToRpy, rpyToMatrix

from friction_estimator.config import Config
from friction_estimator.errors import RobotModelError, choices
from friction_estimator.kernels.records import RecordTemplate, buffered, zeros
from friction_estimator.linear_algebra import skew
from friction_estimator.robot.dynamics import (
    FeetTable,
    build_model,
    dynamic_terms,
    identity_of,
    link_error_basis,
    link_error_columns,
    massless_warnings,
    velocity_seen_from_imu,
)
from friction_estimator.robot.transmission import Transmission
from friction_estimator.robot.urdf import checked_urdf, joint_link, mimics, urdf_warnings, vector_of
from friction_estimator.types import GRAVITY, BaseState, BoolArray, Dynamics, FloatArray

_POSITION_MARGIN = 2.0 * math.pi
"""A position may be beyond its limits of the URDF by this [rad or m]: an encoder may be off by a turn."""
_MAX_POSITION = 1e7
"""A joint without limits may be this far from zero [rad or m]: a wheel at 100 rad/s takes a day to get there."""


class RobotModel:
    """A robot from its URDF and configuration.

    Parameters
    ----------
    config : uses ``robot``, ``imu`` and ``feet``
    urdf_xml : text of the URDF

    Raises
    ------
    RobotModelError
        When the URDF cannot be read or true, or a joint or frame of the configuration is not in it.

    Attributes
    ----------
    joint_names : (n) names in the order of every joint array of the package (the order of the URDF tree)
    foot_names : (k) names in the order of every foot array
    base_dofs : 6, or 0 for a fixed base; the base is the body that has the IMU
    root : root link of the URDF, where that is not the base; else empty
    mass : total mass [kg]
    imu_position_in_base : (3,) r_I of the paper [m]
    rotation_imu_to_base : (3, 3) A_I^b of the paper
    imu_lever : (3, 3) of the cross product with ``imu_position_in_base`` [m]
    limb : (k, n) True where a joint lies between the base and that foot
    effort_limit : (n,) of the motors by the URDF, infinite where it gives none [N m]
    armature : (n,) rotor inertia that the configuration gives, reflected to the joint; 0: none [kg m^2]
    lowest_position, highest_position : (n,) a reading beyond cannot be true: limits of the URDF with a margin
    coupled : (n, n) True where the mass matrix couples two joints (one is an ancestor of the other)
    in_unmeasured_contact : (n,) True where ``robot.unmeasured_contacts`` names a joint, or one that is coupled with it
    motors : that move the joints
    identity : hash of names, limits and masses
    warnings : what the URDF has that is hardly true, one sentence each
    """

    def __init__(self, config: Config, urdf_xml: str) -> None:
        urdf_xml = checked_urdf(urdf_xml)
        self._model = build_model(config, urdf_xml)
        self.root = ""
        if not config.robot.fixed_base and (joint := self._joint_of_imu(config)):
            urdf_xml, self.root = _reroot(urdf_xml, joint)
            self._model = build_model(config, urdf_xml)
        first_joint = 1 if config.robot.fixed_base else 2
        self.warnings = (*urdf_warnings(urdf_xml), *massless_warnings(self._model, first_joint))
        if (followers := sorted(mimics(urdf_xml))) and not config.robot.joints:
            text = f"joints that <mimic> others have no motor, and are held at zero: {', '.join(followers)}"
            self.warnings = (*self.warnings, text)
        self._data = self._model.createData()
        self.base_dofs = 0 if config.robot.fixed_base else 6
        self.joint_names = tuple(self._model.names[first_joint:])
        self.foot_names = tuple(foot.name for foot in config.feet)
        self.mass = float(pin.computeTotalMass(self._model))
        self.motors = Transmission.from_coupling(config.robot.coupling.coupling(), self.joint_names)
        self._foot_frames = [self._frame_id(foot.frame, f"feet.{foot.name}.frame") for foot in config.feet]
        self._place_imu(config)
        self._map_joint_positions(first_joint)
        supports = self._supports(first_joint)
        self.limb: BoolArray = supports[[self._model.frames[frame].parentJoint for frame in self._foot_frames]]
        for foot, joints in zip(config.feet, self.limb, strict=True):
            if not joints.any():
                raise RobotModelError(
                    f"feet.{foot.name}.frame = {foot.frame!r} hangs on no joint of robot.joints: "
                    "list the joints of its limb, or leave the foot out"
                )
            for other, others in zip(config.feet, self.limb, strict=True):
                if other.name != foot.name and (others >= joints).all():
                    raise RobotModelError(
                        f"the feet {foot.name!r} and {other.name!r} are on one limb: one foot a limb is supported, "
                        "whose wrench is that of all its sensors together; leave one out of feet.names"
                    )
        self.coupled: BoolArray = supports[first_joint:] | supports[first_joint:].T
        named = config.robot.in_unmeasured_contact(self.joint_names)
        self.in_unmeasured_contact: BoolArray = named | self.coupled[:, named].any(axis=1)
        self.identity = identity_of(self._model, self.joint_names)
        limit = np.array(self._model.effortLimit[self.base_dofs :])
        self.effort_limit: FloatArray = np.where(limit > 0.0, limit, np.inf)
        self.armature: FloatArray = np.array(self._model.armature[self.base_dofs :])
        self.lowest_position, self.highest_position = self._position_limits()
        self._no_gravity, self._v = np.zeros((2, self._model.nv))
        if self.base_dofs:
            self._model.gravity.linear = np.zeros(3)  # the measured specific force takes its place
        self.imu_lever = skew(self.imu_position_in_base)
        self._view_results()
        inertias = list(self._model.inertias)[first_joint:]
        self._link_errors = np.array([link_error_basis(inertia) for inertia in inertias])

    @property
    def weight(self) -> float:
        """Weight in standard gravity [N]."""
        return self.mass * GRAVITY

    def dynamics(
        self, position: FloatArray, velocity: FloatArray, angular_velocity: FloatArray, specific_force: FloatArray
    ) -> Dynamics:
        """Compute all dynamic quantities of one sample.

        Parameters
        ----------
        position, velocity : (n,) of the joints
        angular_velocity : (3,) of the base, base axes [rad/s]; not used for a fixed base
        specific_force : (3,) at the IMU origin, base axes [m/s^2]; not used for a fixed base
        """
        model, data, q, v = self._model, self._data, self._configuration(position), self._v
        dynamics: Any = self._template.new()
        velocity_seen_from_imu(self.imu_position_in_base, angular_velocity, velocity, v)
        gravity = self._no_gravity if self.base_dofs else pin.computeGeneralizedGravity(model, data, q)
        pin.crba(model, data, q)
        pin.computeCoriolisMatrix(model, data, q, v)
        for place, parent in self._parents:
            place[...] = parent
        dynamic_terms(*self._results, self._feet_buffer, gravity, position, v, specific_force, dynamics.buffer)
        result: Dynamics = dynamics
        return result

    def centre_of_mass(self, dynamics: Dynamics) -> tuple[FloatArray, FloatArray]:
        """Centre of mass in base axes (3,) [m], and its velocity relative to the base, base axes (3,) [m/s]."""
        model, data, v = self._model, self._data, dynamics.velocity
        pin.centerOfMass(model, data, self._configuration(dynamics.position), v)
        position, velocity = data.com[0].copy(), data.vcom[0].copy()
        if self.base_dofs:
            velocity -= v[:3] + np.cross(v[3:6], position)
        return position, velocity

    def state_of_root(self, base: BaseState, dynamics: Dynamics) -> BaseState:
        """Pose and twist of the root link of the URDF, from those of the base, which is another link.

        Errors of the joints are not in the covariance.

        Parameters
        ----------
        base, dynamics : of the sample
        """
        model, data, v = self._model, self._data, dynamics.velocity.copy()
        v[: self.base_dofs] = 0.0
        frame = model.getFrameId(self.root)
        pin.forwardKinematics(model, data, self._configuration(dynamics.position), v)
        place, motion = pin.updateFramePlacement(model, data, frame), pin.getFrameVelocity(model, data, frame)
        R, turn = base.rotation_base_to_world, place.rotation
        lever, rate = skew(R @ place.translation), base.angular_velocity
        of_pose, of_twist = np.eye(6), np.eye(6)
        of_pose[:3, 3:], of_twist[:3, 3:], of_twist[3:, 3:] = -lever, -lever @ R, turn.T
        return BaseState(
            base.position_base_in_world + R @ place.translation,
            R @ turn,
            base.linear_velocity - lever @ R @ rate + R @ turn @ motion.linear,
            turn.T @ rate + motion.angular,
            of_pose @ base.pose_covariance @ of_pose.T,
            of_twist @ base.twist_covariance @ of_twist.T,
        )

    def link_error_columns(self, dynamics: Dynamics, acceleration: FloatArray) -> FloatArray:
        """Torque that errors of the links' inertial parameters add to every joint.

        Columns of the inverse dynamic model, linear in the inertial parameters: a relative error of a link's mass,
        which scales its inertia too, and shifts of its centre of mass.

        Parameters
        ----------
        dynamics : of the sample
        acceleration : (3 + n,) angular one of the base, base axes, not used for a fixed base [rad/s^2]; of the joints

        Returns
        -------
        (n, n, 4) torque on joint i per error of the link behind joint j: mass [1], centre of mass x, y, z [m] in the
        axes of joint j
        """
        seen_from_imu = self._acceleration(acceleration)
        if self.base_dofs:
            seen_from_imu[:3] += dynamics.specific_force
        at = self._configuration(dynamics.position), dynamics.velocity, seen_from_imu
        regressor = pin.computeJointTorqueRegressor(self._model, self._data, *at)
        regressor = regressor.reshape(self._model.nv, -1)  # pinocchio gives a vector where there is a single row
        return link_error_columns(regressor[self.base_dofs :], self._link_errors)

    def position_error_columns(self, dynamics: Dynamics, acceleration: FloatArray, wrenches: FloatArray) -> FloatArray:
        """Torque (n, n) that errors of joint positions, reading minus truth, add to every joint [N m/rad].

        Parameters
        ----------
        dynamics, acceleration : as of :meth:`link_error_columns`
        wrenches : (k, 6) of the ground on the feet, sole frames
        """
        derivatives = self.inverse_dynamics_derivatives(dynamics, self._acceleration(acceleration), wrenches)
        return -derivatives[0][self.base_dofs :]

    def _acceleration(self, acceleration: FloatArray) -> FloatArray:
        """Generalised acceleration (nv,) seen from the IMU, from those of base and joints (3 + n,)."""
        generalised = np.empty(self._model.nv)
        generalised[self.base_dofs :] = acceleration[3:]
        if self.base_dofs:
            generalised[:3] = self.imu_lever @ acceleration[:3]
            generalised[3:6] = acceleration[:3]
        return generalised

    def inverse_dynamics_derivatives(
        self, dynamics: Dynamics, acceleration: FloatArray, wrenches: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Derivatives of ``H a + b - J^T F`` with respect to joint positions and generalised velocities.

        Wrenches stay fixed in their sole frames.

        Parameters
        ----------
        dynamics : of the sample
        acceleration : (nv,) generalised acceleration
        wrenches : (k, 6) of the ground on the feet, sole frames

        Returns
        -------
        by_position : (nv, n)
        by_velocity : (nv, nv)
        """
        for (joint, placement), wrench in zip(self._soles, wrenches, strict=True):
            self._forces[joint] = placement.act(pin.Force(wrench))
        if self.base_dofs:  # a uniform specific force is an acceleration of the base without gravity
            acceleration = acceleration.copy()
            acceleration[:3] += dynamics.specific_force
        at = self._configuration(dynamics.position), dynamics.velocity, acceleration, self._forces
        by_position, by_velocity, _ = pin.computeRNEADerivatives(self._model, self._data, *at)
        return np.ascontiguousarray(by_position[:, self.base_dofs :]), np.ascontiguousarray(by_velocity)

    def foot_acceleration_derivatives(
        self, dynamics: Dynamics, acceleration: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Derivatives of the soles' classical acceleration, sole axes, by joint positions and velocities.

        Returns
        -------
        by_position : (k, 6, n)
        by_velocity : (k, 6, nv)
        """
        model, data = self._model, self._data
        pin.computeForwardKinematicsDerivatives(
            model, data, self._configuration(dynamics.position), dynamics.velocity, acceleration
        )
        nv, k = self._model.nv, len(self._foot_frames)
        by_position, by_velocity = np.empty((k, 6, nv - self.base_dofs)), np.empty((k, 6, nv))
        for foot, frame in enumerate(self._foot_frames):
            v_q, a_q, a_v, a_a = pin.getFrameAccelerationDerivatives(model, data, frame, pin.LOCAL)
            motion = pin.getFrameVelocity(model, data, frame, pin.LOCAL)
            jacobian = dynamics.foot_jacobian[foot]
            # classical = spatial + [omega x v, 0]; the product rule adds the derivatives of omega and v
            omega, linear = skew(motion.angular), skew(motion.linear)
            for spatial, velocity_derivative in ((a_q, v_q), (a_v, jacobian)):
                spatial[:3] += omega @ velocity_derivative[:3] - linear @ velocity_derivative[3:]
            by_position[foot], by_velocity[foot] = a_q[:, self.base_dofs :], a_v
        return by_position, by_velocity

    def _configuration(self, position: FloatArray) -> FloatArray:
        q = self._q
        if not self._continuous.size:
            q[self._first_q :] = position
            return q
        q[self._scalar_q] = position[self._scalar]
        q[self._continuous_q] = np.cos(position[self._continuous])
        q[self._continuous_q + 1] = np.sin(position[self._continuous])
        return q

    def _view_results(self) -> None:
        """Hold views of pinocchio's results, as C-contiguous arrays, and the soles' places behind their last joints."""
        data, frames = self._data, [self._model.frames[frame] for frame in self._foot_frames]
        nv, k = self._model.nv, len(frames)  # pinocchio gives vectors where there is a single velocity
        parents = [data.oMi[frame.parentJoint] for frame in frames]
        self._soles = [(frame.parentJoint, frame.placement) for frame in frames]
        self._forces = pin.StdVec_Force([pin.Force.Zero() for _ in range(self._model.njoints)])
        n = len(self.joint_names)
        mass, coriolis = (matrix.reshape(nv, nv, order="F").T for matrix in (data.M, data.C))
        jacobian, jacobian_rate = (matrix.reshape(6, nv, order="F").T for matrix in (data.J, data.dJ))
        self._results = mass, coriolis, jacobian, jacobian_rate
        table = FeetTable(
            np.zeros((k, 3, 3)), np.zeros((k, 3)),
            np.reshape([frame.placement.rotation for frame in frames], (k, 3, 3)),
            np.reshape([frame.placement.translation for frame in frames], (k, 3)),
            np.hstack((np.ones((k, self.base_dofs), dtype=bool), self.limb)),
            self.base_dofs > 0,
        )  # fmt: skip
        self._feet_buffer, feet = buffered(table)
        self._parents = [
            *zip(feet.parent_rotation, [parent.rotation for parent in parents], strict=True),
            *zip(feet.parent_position, [parent.translation for parent in parents], strict=True),
        ]
        self._template = RecordTemplate(
            zeros(
                Dynamics, position=n, velocity=nv, specific_force=3, mass_matrix=(nv, nv), bias=nv, momentum_bias=nv,
                foot_jacobian=(k, 6, nv), foot_bias_acceleration=(k, 6), foot_position_in_base=(k, 3),
                foot_rotation_to_base=(k, 3, 3),
            )
        )  # fmt: skip

    def _frame_id(self, name: str, parameter: str) -> int:
        if not self._model.existFrame(name):
            frames = {frame.name for frame in self._model.frames if frame.type == pin.FrameType.BODY}
            near = difflib.get_close_matches(name, frames, n=1)
            hint = f" (did you mean {near[0]!r}?)" if near else ""
            raise RobotModelError(f"{parameter} = {name!r} is not in the URDF{hint}; its links are {choices(frames)}")
        return int(self._model.getFrameId(name))

    def _joint_of_imu(self, config: Config) -> str:
        """Joint that moves the IMU against the root link; empty where it is on the root link."""
        model, frames = self._model, self._model.frames
        joint = frames[self._frame_id(config.imu.frame, "imu.frame")].parentJoint
        if joint == 1:
            return ""
        for foot in config.feet:
            if joint in model.supports[frames[self._frame_id(foot.frame, f"feet.{foot.name}.frame")].parentJoint]:
                raise RobotModelError(
                    f"imu.frame = {config.imu.frame!r} moves with joint {model.names[joint]!r} of the leg of "
                    f"{foot.name!r}; the IMU must be on a body that no leg moves: the root link, or above a waist"
                )
        return str(model.names[joint])

    def _place_imu(self, config: Config) -> None:
        self.imu_position_in_base: FloatArray = np.zeros(3)
        self.rotation_imu_to_base: FloatArray = np.eye(3)
        if config.robot.fixed_base:
            return
        frame = self._model.frames[self._frame_id(config.imu.frame, "imu.frame")]
        self.imu_position_in_base = frame.placement.translation.copy()
        self.rotation_imu_to_base = frame.placement.rotation.copy()

    def _map_joint_positions(self, first_joint: int) -> None:
        joints = [self._model.joints[index] for index in range(first_joint, self._model.njoints)]
        is_continuous = np.array([joint.nq == 2 for joint in joints], dtype=bool)
        first_q = np.array([joint.idx_q for joint in joints], dtype=int)
        self._scalar, self._continuous = np.flatnonzero(~is_continuous), np.flatnonzero(is_continuous)
        self._scalar_q, self._continuous_q = first_q[~is_continuous], first_q[is_continuous]
        self._q, self._first_q = pin.neutral(self._model), int(first_q[0])

    def _position_limits(self) -> tuple[FloatArray, FloatArray]:
        """Lowest and highest position that a joint may have, (n,), (n,); URDFs without limits give zero for both."""
        n = len(self.joint_names)
        low, high = np.full(n, -_MAX_POSITION), np.full(n, _MAX_POSITION)
        lower, upper = self._model.lowerPositionLimit[self._scalar_q], self._model.upperPositionLimit[self._scalar_q]
        limited = lower < upper
        joints = self._scalar[limited]
        low[joints] = np.maximum(lower[limited] - _POSITION_MARGIN, -_MAX_POSITION)
        high[joints] = np.minimum(upper[limited] + _POSITION_MARGIN, _MAX_POSITION)
        return low, high

    def _supports(self, first_joint: int) -> BoolArray:
        """True where a joint (n) lies between the base and a joint of pinocchio, or is that joint; one row for each."""
        supports = np.zeros((self._model.njoints, len(self.joint_names)), dtype=bool)
        for joint, ancestors in enumerate(self._model.supports):
            supports[joint, [ancestor - first_joint for ancestor in ancestors if ancestor >= first_joint]] = True
        return supports


def link_positions(urdf_xml: str, links: Iterable[str]) -> dict[str, FloatArray]:
    """Place (3,) of these links in the axes of the root where all joints are at zero [m]."""
    model = pin.buildModelFromXML(checked_urdf(urdf_xml))
    data = model.createData()
    pin.framesForwardKinematics(model, data, pin.neutral(model))
    return {link: data.oMf[model.getFrameId(link, pin.FrameType.BODY)].translation for link in links}


def _reroot(urdf_xml: str, joint_name: str) -> tuple[str, str]:
    """The same robot with the child of a joint as its root link, and the name of the root link before.

    The joints between both are reversed. One of the placement ``O R(q)`` has the placement ``R(q)^-1 O^-1`` seen from
    its child: the same position about the opposite axis, then a fixed placement.

    Parameters
    ----------
    urdf_xml : a checked URDF
    joint_name : of one of its joints
    """
    root = ElementTree.fromstring(urdf_xml)
    above = {joint_link(joint, "child"): joint for joint in root.findall("joint")}
    link = next(end for end, joint in above.items() if joint.get("name") == joint_name)
    while (joint := above.get(link)) is not None:
        parent, middle = joint_link(joint, "parent"), f"{joint.get('name')}_reversed"
        xyz, rpy = (vector_of(joint.find("origin"), part) for part in ("xyz", "rpy"))
        back = rpyToMatrix(rpy).T
        origin = {"xyz": _xml_text(-back @ xyz), "rpy": _xml_text(matrixToRpy(back))}
        axis = vector_of(joint.find("axis"), "xyz")
        about = axis if axis.any() else np.array([1.0, 0.0, 0.0])
        for part in [part for part in joint if part.tag in ("parent", "child", "origin", "axis")]:
            joint.remove(part)
        SubElement(root, "link", {"name": middle})
        fixed = SubElement(root, "joint", {"name": f"{middle}_origin", "type": "fixed"})
        for one, start, end in ((joint, link, middle), (fixed, middle, parent)):
            SubElement(one, "parent", {"link": start})
            SubElement(one, "child", {"link": end})
        SubElement(joint, "axis", {"xyz": _xml_text(-about)})
        SubElement(fixed, "origin", origin)
        link = parent
    return ElementTree.tostring(root, encoding="unicode"), link


def _xml_text(numbers: FloatArray) -> str:
    return " ".join(repr(number) for number in numbers.tolist())
