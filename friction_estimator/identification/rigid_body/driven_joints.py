"""Which joints of a URDF a recorded joint moves: itself, and those that mimic it; the others stand still."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from xml.etree import ElementTree

import numpy as np
import pinocchio as pin

from friction_estimator.errors import RobotModelError, choices
from friction_estimator.types import FloatArray


class DrivenJoints:
    """Recorded joints (n) to pinocchio's joints (nv): ``q_all = S q + c``, and torques back by ``S^T``.

    Parameters
    ----------
    model : pinocchio model whose mimic joints are independent
    urdf_xml : the URDF it was made from, for its mimic tags
    joint_names : (n) recorded joints
    locked : positions of joints that were not recorded, zero unless told

    Attributes
    ----------
    locked : joints that stand still

    Raises
    ------
    RobotModelError
        When a joint is unknown, is of a kind that a log cannot hold (ball, floating), or mimics one that is recorded.
    """

    def __init__(
        self, model: pin.Model, urdf_xml: str, joint_names: Sequence[str], locked: Mapping[str, float]
    ) -> None:
        names = list(model.names)[1:]
        unknown = [name for name in (*joint_names, *locked) if name not in names]
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
            if master in joint_names:
                self._matrix[row, list(joint_names).index(master)] = multiplier
                self._offset[row] = offset
            else:
                self._offset[row] = locked.get(name, multiplier * locked.get(master, 0.0) + offset)
        self.locked = tuple(name for name, row in zip(names, self._matrix, strict=True) if not row.any())
        self._own = [names.index(name) for name in joint_names]
        leaders = [name for name in joint_names if name in mimics]
        if leaders:
            raise RobotModelError(f"the joints {choices(leaders)} mimic others in the URDF: leave them out of the data")

    def expand(self, rates: FloatArray) -> FloatArray:
        """Velocities or accelerations (N, n) of the recorded joints as those of all joints (N, nv)."""
        return rates @ self._matrix.T

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
        return np.asarray(self._matrix.T @ torques)

    def limits(self, bounds: FloatArray, without: float) -> FloatArray:
        """Position limits (n,) of the recorded joints from pinocchio's (nq,)."""
        joints = [list(self._model.joints)[1 + row] for row in self._own]
        return np.array([bounds[joint.idx_q] if joint.nq == 1 else without for joint in joints])


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
