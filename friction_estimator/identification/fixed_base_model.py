"""Rigid-body torque of a robot with a fixed base, linear in its inertial parameters: pinocchio's regressor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from xml.etree import ElementTree

import numpy as np
import pinocchio as pin

from friction_estimator.errors import InputError, RobotModelError, choices
from friction_estimator.identification.joint_log import EXTERNAL, ExternalWrench, JointLog, Payload
from friction_estimator.robot.urdf import checked_urdf, doubts
from friction_estimator.types import GRAVITY, FloatArray


class DrivenJoints:
    """Recorded joints (n) to pinocchio's joints (nv): ``q_all = S q + c``, and torques back by ``S^T``.

    Parameters
    ----------
    model : pinocchio model whose mimic joints are independent
    urdf_xml : the URDF it was made from, for its mimic tags
    joint_names : (n) recorded joints

    Attributes
    ----------
    locked : joints that were not recorded and mimic none that was: they stand at zero, or at the offset of their tag

    Raises
    ------
    RobotModelError
        When a joint is unknown, is of a kind that a log cannot hold (ball, floating), or mimics one that is recorded.
    """

    def __init__(self, model: pin.Model, urdf_xml: str, joint_names: Sequence[str]) -> None:
        names = list(model.names)[1:]
        unknown = [name for name in joint_names if name not in names]
        if unknown:
            raise RobotModelError(f"the URDF has no joint {choices(unknown)}; it has {choices(names)}")
        if any(joint.nv != 1 for joint in list(model.joints)[1:]):
            raise RobotModelError("joints of several degrees of freedom cannot be identified from joint logs")
        self._model = model
        mimics = _mimic_tags(urdf_xml)
        self._matrix = np.zeros((len(names), len(joint_names)))
        self._offset = np.zeros(len(names))
        for row, name in enumerate(names):
            multiplier, offset, master = _follow(name, mimics)
            self._offset[row] = offset
            if master in joint_names:
                self._matrix[row, list(joint_names).index(master)] = multiplier
        self.locked = tuple(name for name, row in zip(names, self._matrix, strict=True) if not row.any())
        self._same = self._matrix.shape[0] == self._matrix.shape[1] and bool((self._matrix == np.eye(len(names))).all())
        leaders = [name for name in joint_names if name in mimics]
        if leaders:
            raise RobotModelError(f"the joints {choices(leaders)} mimic others in the URDF: leave them out of the data")

    def expand(self, rates: FloatArray) -> FloatArray:
        """Velocities or accelerations (N, n) of the recorded joints as those of all joints (N, nv)."""
        return rates if self._same else rates @ self._matrix.T

    def configuration(self, position: FloatArray) -> FloatArray:
        """Positions (N, n) as pinocchio's configurations (N, nq); joints without limits take cosine and sine."""
        everything = position @ self._matrix.T + self._offset
        configuration = np.empty((len(position), self._model.nq))
        for row, joint in enumerate(list(self._model.joints)[1:]):
            angle = everything[:, row]
            if joint.nq == 1:
                configuration[:, joint.idx_q] = angle
            else:
                configuration[:, joint.idx_q] = np.cos(angle)
                configuration[:, joint.idx_q + 1] = np.sin(angle)
        return configuration

    def reduce(self, torques: FloatArray) -> FloatArray:
        """Rows of all joints (nv, ...) as rows of the recorded joints (n, ...)."""
        return torques if self._same else np.asarray(self._matrix.T @ torques)


def _mimic_tags(urdf_xml: str) -> dict[str, tuple[float, float, str]]:
    tags = {}
    for joint in ElementTree.fromstring(urdf_xml).iter("joint"):
        mimic = joint.find("mimic")
        if mimic is not None:
            tags[joint.get("name", "")] = (
                float(mimic.get("multiplier", "1")),
                float(mimic.get("offset", "0")),
                mimic.get("joint", ""),
            )
    return tags


def _follow(name: str, mimics: Mapping[str, tuple[float, float, str]]) -> tuple[float, float, str]:
    """Multiplier, offset and name of the joint at the end of a chain of mimic tags."""
    multiplier, offset = 1.0, 0.0
    for _ in range(len(mimics) + 1):
        if name not in mimics:
            return multiplier, offset, name
        factor, shift, name = mimics[name]
        multiplier, offset = multiplier * factor, offset + multiplier * shift
    raise RobotModelError(f"the mimic tags of the URDF form a circle through {name!r}")


STANDARD_NAMES = ("m", "mx", "my", "mz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")
"""Inertial parameters of a link in pinocchio's order: mass, first moments, inertia about the joint's origin."""
STANDARD_UNITS = ("kg", *("kg m",) * 3, *("kg m^2",) * 6)
STANDARD_COUNT = len(STANDARD_NAMES)


_BLOCK = 2048
"""Samples of which all standard parameters have columns at once: bounds the memory."""


def blocks(samples: int) -> list[slice]:
    """Rows of a motion that are computed at once."""
    return [slice(first, first + _BLOCK) for first in range(0, max(samples, 1), _BLOCK)]


class FixedBaseModel:
    """Inverse dynamics ``tau_out = D(q, dq, ddq) chi`` (Hamon et al. 2010, eqs. 2 and 9) of the recorded joints.

    Joints of the URDF that were not recorded are locked at zero, unless they mimic a recorded one: they move with it.
    Links behind a locked joint are one body with the link that carries them: parameters are those of that body.

    Parameters
    ----------
    urdf_xml : text of the URDF
    joint_names : (n) recorded joints, in the order of every array

    Attributes
    ----------
    joint_names : (n)
    standard_names, standard_units : (s) ten a link, e.g. ``Izz knee`` for the link behind the joint ``knee``
    urdf_parameters : (s,) their values in the URDF
    behind : of every link, by the name of its joint, itself and all links that it carries
    carried : of links with others behind locked joints, the names of these joints
    lower_limit, upper_limit : (n,) positions of the URDF, infinite where there is no limit [rad or m]
    velocity_limit, effort_limit : (n,) of the URDF [rad/s or m/s, N m or N]
    warnings : numbers of the URDF that are hardly true, one sentence each

    Raises
    ------
    RobotModelError
        When the URDF cannot be read, or has no such joint.
    """

    def __init__(self, urdf_xml: str, joint_names: Sequence[str]) -> None:
        urdf_xml = checked_urdf(urdf_xml)
        self.warnings = doubts(urdf_xml)
        try:
            self._model = pin.buildModelFromXML(urdf_xml)
        except ValueError as error:
            raise RobotModelError(f"the URDF cannot be read: {error}") from None
        every = DrivenJoints(self._model, urdf_xml, joint_names)
        self.carried = _carried(self._model, every.locked)
        at_rest = every.configuration(np.zeros((1, len(joint_names))))[0]
        still = [self._model.getJointId(name) for name in every.locked]
        self._model = pin.buildReducedModel(self._model, still, at_rest)
        self._driven = DrivenJoints(self._model, urdf_xml, joint_names)
        self._model.gravity.linear = np.array([0.0, 0.0, -GRAVITY])
        self._data = self._model.createData()
        self.joint_names = tuple(joint_names)
        links = list(self._model.names)[1:]
        self.behind = _behind(self._model)
        self.standard_names = tuple(f"{name} {link}" for link in links for name in STANDARD_NAMES)
        self.standard_units = STANDARD_UNITS * len(links)
        inertias = list(self._model.inertias)[1:]
        self.urdf_parameters: FloatArray = np.concatenate([inertia.toDynamicParameters() for inertia in inertias])
        joints = [self._model.joints[self._model.getJointId(name)] for name in joint_names]
        rows, limited = [joint.idx_v for joint in joints], np.array([joint.nq == 1 for joint in joints])
        low, high = (
            np.array([bounds[joint.idx_q] for joint in joints])
            for bounds in (self._model.lowerPositionLimit, self._model.upperPositionLimit)
        )
        self.lower_limit, self.upper_limit = np.where(limited, low, -np.inf), np.where(limited, high, np.inf)
        self.velocity_limit = np.array(self._model.velocityLimit)[rows]
        self.effort_limit = np.array(self._model.effortLimit)[rows]

    @property
    def limbs(self) -> tuple[tuple[str, ...], ...]:
        """Recorded joints that move links together, by the first joint behind the base."""
        roots: dict[int, list[str]] = {}
        for name in self.joint_names:
            chain = list(self._model.supports[self._model.getJointId(name)])
            roots.setdefault(next((joint for joint in chain if joint > 0), 0), []).append(name)
        return tuple(map(tuple, roots.values()))

    def regressor(self, position: FloatArray, velocity: FloatArray, acceleration: FloatArray) -> FloatArray:
        """Torque that every standard parameter gives every joint, (N, n, s).

        Parameters
        ----------
        position, velocity, acceleration : (N, n) [rad, rad/s, rad/s^2] or [m, m/s, m/s^2]
        """
        model, data, driven = self._model, self._data, self._driven
        columns = np.empty((len(position), len(self.joint_names), len(self.standard_names)))
        motions = zip(driven.configuration(position), driven.expand(velocity), driven.expand(acceleration), strict=True)
        for sample, (q, v, a) in enumerate(motions):
            regressor = np.atleast_2d(pin.computeJointTorqueRegressor(model, data, q, v, a))  # a vector for one joint
            columns[sample] = driven.reduce(regressor)
        return columns

    def torque(
        self,
        position: FloatArray,
        velocity: FloatArray,
        acceleration: FloatArray,
        payload: Payload | None = None,
    ) -> FloatArray:
        """Torque of the URDF's own inertial parameters, with the payload if there is one, (N, n) [N m]."""
        parameters = self.urdf_parameters
        if payload is not None:
            parameters = parameters + self.payload_parameters(payload)
        parts = (
            self.regressor(position[rows], velocity[rows], acceleration[rows]) @ parameters
            for rows in blocks(len(position))
        )
        return np.concatenate(list(parts))

    def payload_parameters(self, payload: Payload) -> FloatArray:
        """What a payload adds to the standard parameters, (s,): Hamon et al. 2010, eqs. 32-33 for any body and frame.

        Raises
        ------
        InputError
            When the URDF has no frame of that name.
        """
        frame = self._model.frames[self._frame(payload.frame, "the payload is fixed to")]
        body = pin.Inertia(payload.mass, np.asarray(payload.com, dtype=float), np.asarray(payload.inertia, dtype=float))
        parameters = np.zeros(len(self.standard_names))
        if frame.parentJoint > 0:
            first = (frame.parentJoint - 1) * STANDARD_COUNT
            parameters[first : first + STANDARD_COUNT] = frame.placement.act(body).toDynamicParameters()
        return parameters

    def external_torque(self, position: FloatArray, wrench: FloatArray, place: ExternalWrench) -> FloatArray:
        """Torque ``J^T F`` (N, n) by which an external force drives the joints [N m].

        Parameters
        ----------
        position : (N, n) [rad or m]
        wrench : (N, 6) force [N] and moment [N m]
        place : where it acts, and in which axes it is given

        Raises
        ------
        InputError
            When the URDF has no frame of that name.
        """
        model, data = self._model, self._data
        frame = self._frame(place.frame, "the force acts on")
        axes = self._frame(place.axes or place.frame, "the force is given in the axes of")
        torque = np.empty_like(position)
        for sample, q in enumerate(self._driven.configuration(position)):
            jacobian = pin.computeFrameJacobian(model, data, q, frame, pin.LOCAL_WORLD_ALIGNED)
            rotation = pin.updateFramePlacement(model, data, axes).rotation
            force, moment = rotation @ wrench[sample, :3], rotation @ wrench[sample, 3:]
            torque[sample] = self._driven.reduce(jacobian[:3].T @ force + jacobian[3:].T @ moment)
        return torque

    def _frame(self, name: str, use: str) -> int:
        """Number of the frame with this name, that of a link rather than of a joint."""
        frames = [number for number, frame in enumerate(self._model.frames) if frame.name == name]
        if not frames:
            names = {frame.name for frame in self._model.frames}
            raise InputError(f"{use} the frame {name!r}; the frames are {choices(names)}")
        return max(frames, key=lambda number: self._model.frames[number].type == pin.FrameType.BODY)


def with_external_torque(log: JointLog, urdf_xml: str, places: Sequence[ExternalWrench]) -> JointLog:
    """The log with the torque of all external forces as the input ``external``, joint by joint.

    Raises
    ------
    InputError
        When the log has no such columns, they are not complete, or the URDF has no such frame.
    """
    if not places:
        return log
    model, total = FixedBaseModel(urdf_xml, log.joint_names), np.zeros_like(log.position)
    for place in places:
        if place.columns not in log.wrenches:
            there = choices(log.wrenches) if log.wrenches else "none"
            columns = f"{place.columns}/x, /y and /z"
            raise InputError(
                f"{log.name}: there is no force {place.columns!r}, columns {columns}; its forces are {there}"
            )
        total += model.external_torque(log.position, log.wrenches[place.columns], place)
    return replace(log, inputs=MappingProxyType({**log.inputs, EXTERNAL: total + log.inputs.get(EXTERNAL, 0.0)}))


def _behind(model: pin.Model) -> Mapping[str, frozenset[str]]:
    """Of every joint, itself and those that it carries."""
    names = list(model.names)
    return {
        names[joint]: frozenset(names[other] for other in model.subtrees[joint]) for joint in range(1, model.njoints)
    }


def _carried(model: pin.Model, locked: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
    """Locked joints by the moving joint that carries them; those that stand on the base do not move at all."""
    names = list(model.names)
    carried: dict[str, tuple[str, ...]] = {}
    for name in locked:
        parent = model.parents[model.getJointId(name)]
        while names[parent] in locked:
            parent = model.parents[parent]
        if parent > 0:
            carried[names[parent]] = (*carried.get(names[parent], ()), name)
    return carried
