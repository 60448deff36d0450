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
from friction_estimator.robot.urdf import checked_urdf, urdf_warnings
from friction_estimator.types import GRAVITY, FloatArray


def _driven(urdf_xml: str, names: Sequence[str], joint_names: Sequence[str]) -> tuple[FloatArray, FloatArray]:
    """Recorded joints (n) to all joints (nv): S (nv, n) and c (nv,) of ``q_all = S q + c``, by the mimic tags.

    Rows of joints that were not recorded, and mimic none that was, are zero: they stand at zero, or at their offset.

    Raises
    ------
    RobotModelError
        When a joint is unknown, or mimics another one.
    """
    unknown = [name for name in joint_names if name not in names]
    if unknown:
        raise RobotModelError(f"the URDF has no joint {choices(unknown)}; it has {choices(names)}")
    joints = ElementTree.fromstring(urdf_xml).iter("joint")
    mimics = {joint.get("name", ""): tag for joint in joints if (tag := joint.find("mimic")) is not None}
    if leaders := [name for name in joint_names if name in mimics]:
        raise RobotModelError(f"the joints {choices(leaders)} mimic others in the URDF: leave them out of the data")
    matrix, offset = np.zeros((len(names), len(joint_names))), np.zeros(len(names))
    for row, name in enumerate(names):
        multiplier, shift, master, passed = 1.0, 0.0, name, {name}
        while master in mimics:  # a chain of tags
            tag = mimics[master]
            shift += multiplier * float(tag.get("offset", "0"))
            multiplier *= float(tag.get("multiplier", "1"))
            master = tag.get("joint", "")
            if master in passed:
                raise RobotModelError(f"the mimic tags of the URDF form a circle through {master!r}")
            passed.add(master)
        offset[row] = shift
        if master in joint_names:
            matrix[row, list(joint_names).index(master)] = multiplier
    return matrix, offset


def _configurations(model: pin.Model, position: FloatArray) -> FloatArray:
    """Pinocchio's configurations (N, nq) at positions (N, nv); joints without limits take cosine and sine."""
    configuration = np.empty((len(position), model.nq))
    for angle, joint in zip(position.T, list(model.joints)[1:], strict=True):
        turns = (angle,) if joint.nq == 1 else (np.cos(angle), np.sin(angle))
        for k, value in enumerate(turns):
            configuration[:, joint.idx_q + k] = value
    return configuration


STANDARD_NAMES = ("m", "mx", "my", "mz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")
"""Inertial parameters of a link in pinocchio's order: mass, first moments, inertia about the joint's origin."""
_STANDARD_UNITS = ("kg", *("kg m",) * 3, *("kg m^2",) * 6)
STANDARD_COUNT = len(STANDARD_NAMES)


_BLOCK_SAMPLES = 2048
"""Samples of which all standard parameters have columns at once: bounds the memory."""


def blocks(samples: int) -> list[slice]:
    """Slices of ``samples`` rows of a motion, each computed at once."""
    return [slice(first, first + _BLOCK_SAMPLES) for first in range(0, max(samples, 1), _BLOCK_SAMPLES)]


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
        When the URDF cannot be read, or a joint is unknown, mimics another one, or is one that a log cannot hold (ball,
        floating).
    """

    def __init__(self, urdf_xml: str, joint_names: Sequence[str]) -> None:
        urdf_xml = checked_urdf(urdf_xml)
        self.warnings = urdf_warnings(urdf_xml)
        try:
            self._model = pin.buildModelFromXML(urdf_xml)
        except ValueError as error:
            raise RobotModelError(f"the URDF cannot be read: {error}") from None
        names = list(self._model.names)[1:]
        matrix, offset = _driven(urdf_xml, names, joint_names)
        if any(joint.nv != 1 for joint in list(self._model.joints)[1:]):
            raise RobotModelError("joints of several degrees of freedom cannot be identified from joint logs")
        moves = matrix.any(axis=1)
        locked = [name for name, row in zip(names, matrix, strict=True) if not row.any()]
        self.carried = _carried(self._model, locked)
        at_rest = _configurations(self._model, offset[None])[0]
        self._model = pin.buildReducedModel(self._model, [self._model.getJointId(name) for name in locked], at_rest)
        self._matrix, self._offset = matrix[moves], offset[moves]  # q_all = S q + c, and torques back by S^T
        self._same = np.array_equal(self._matrix, np.eye(len(joint_names)))
        self._model.gravity.linear = np.array([0.0, 0.0, -GRAVITY])
        self._data = self._model.createData()
        self.joint_names = tuple(joint_names)
        links = list(self._model.names)[1:]
        everyone = ["universe", *links]
        self.behind: Mapping[str, frozenset[str]] = {
            name: frozenset(everyone[other] for other in self._model.subtrees[self._model.getJointId(name)])
            for name in links
        }
        self.standard_names = tuple(f"{name} {link}" for link in links for name in STANDARD_NAMES)
        self.standard_units = _STANDARD_UNITS * len(links)
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
        model, data, S = self._model, self._data, self._matrix
        columns = np.empty((len(position), len(self.joint_names), len(self.standard_names)))
        rates = (one if self._same else one @ S.T for one in (velocity, acceleration))
        for sample, (q, v, a) in enumerate(zip(self._configurations(position), *rates, strict=True)):
            regressor = np.atleast_2d(pin.computeJointTorqueRegressor(model, data, q, v, a))  # a vector for one joint
            columns[sample] = regressor if self._same else S.T @ regressor
        return columns

    def _configurations(self, position: FloatArray) -> FloatArray:
        """Pinocchio's configurations (N, nq) at positions (N, n) of the recorded joints."""
        return _configurations(self._model, position @ self._matrix.T + self._offset)

    def torque(
        self, position: FloatArray, velocity: FloatArray, acceleration: FloatArray, payload: Payload | None = None
    ) -> FloatArray:
        """Torque (N, n) [N m] by the inertia of the URDF and of a payload; other arguments as of :meth:`regressor`."""
        parameters = self.urdf_parameters
        if payload is not None:
            parameters = parameters + self.payload_parameters(payload)
        parts = (
            self.regressor(position[rows], velocity[rows], acceleration[rows]) @ parameters
            for rows in blocks(len(position))
        )
        return np.concatenate(list(parts))

    def payload_parameters(self, payload: Payload, found: Mapping[str, float] = MappingProxyType({})) -> FloatArray:
        """What a payload adds to the standard parameters, (s,): Hamon et al. 2010, eqs. 32-33 for any body and frame.

        Parameters
        ----------
        found : parameters of :meth:`unknown_of_payload` that were identified; others are those of a point at the frame

        Raises
        ------
        InputError
            When the URDF has no frame of that name.
        """
        com, inertia = (
            np.zeros(size) if given is None else np.asarray(given, dtype=float)
            for given, size in ((payload.com, 3), (payload.inertia, (3, 3)))
        )
        parameters = self._fixed_body(payload.frame, pin.Inertia(payload.mass, com, inertia))
        for name, (_, direction) in self.unknown_of_payload(payload).items():
            parameters += found.get(name, 0.0) * direction
        return parameters

    def unknown_of_payload(self, payload: Payload) -> dict[str, tuple[str, FloatArray]]:
        """Unknown parameters of a payload by name: unit, and the standard parameters (s,) per unit.

        They are the first moments, and the inertia about the origin, in the axes of the frame. Empty where the centre
        of mass is given, or the payload does not move.

        Raises
        ------
        InputError
            When the URDF has no frame of that name.
        """
        if payload.com is not None:
            return {}
        where = f"of the payload of {payload.mass:g} kg at {payload.frame}"
        point, *others = np.eye(STANDARD_COUNT)
        here, *moved = (
            self._fixed_body(payload.frame, pin.Inertia.FromDynamicParameters(point + other))
            for other in (np.zeros(STANDARD_COUNT), *others)
        )
        named = zip(STANDARD_NAMES[1:], _STANDARD_UNITS[1:], moved, strict=True)
        return {f"{name} {where}": (unit, one - here) for name, unit, one in named if (one != here).any()}

    def _fixed_body(self, frame: str, body: pin.Inertia) -> FloatArray:
        """Standard parameters (s,) of a body in a frame of the robot; zero where the frame does not move."""
        place = self._model.frames[self._frame(frame, "the payload is fixed to")]
        parameters = np.zeros(len(self.standard_names))
        if place.parentJoint > 0:
            first = (place.parentJoint - 1) * STANDARD_COUNT
            parameters[first : first + STANDARD_COUNT] = place.placement.act(body).toDynamicParameters()
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
        for sample, q in enumerate(self._configurations(position)):
            jacobian = pin.computeFrameJacobian(model, data, q, frame, pin.LOCAL_WORLD_ALIGNED)
            rotation = pin.updateFramePlacement(model, data, axes).rotation
            force, moment = rotation @ wrench[sample, :3], rotation @ wrench[sample, 3:]
            torque[sample] = self._matrix.T @ (jacobian[:3].T @ force + jacobian[3:].T @ moment)
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
        When the log lacks a column of a force, or the URDF the frame of one.
    """
    if not places:
        return log
    model, total = FixedBaseModel(urdf_xml, log.joint_names), np.zeros_like(log.position)
    for place in places:
        if place.columns not in log.wrenches:
            raise InputError(
                f"{log.name} has no columns {place.columns}/x, /y and /z for the force on {place.frame!r}; forces were "
                f"recorded under {choices(log.wrenches)}: name one of these, or leave the recording out"
            )
        total += model.external_torque(log.position, log.wrenches[place.columns], place)
    return replace(log, inputs=MappingProxyType({**log.inputs, EXTERNAL: total + log.inputs.get(EXTERNAL, 0.0)}))


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
