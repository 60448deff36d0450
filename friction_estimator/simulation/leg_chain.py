"""A leg whose axes do not meet in points: its inverse kinematics by Newton's method."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from friction_estimator.types import BoolArray, FloatArray

_TOLERANCE = 1e-11  # of the pose [m, rad]: differences over a control period, twice, must still be smooth
_ITERATIONS = 40
_LARGEST_STEP = 0.3  # [rad]


class LegChain:
    """Six joints from the base to a sole.

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
        reached : (N,) False where there is no such pose
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
        for _ in range(_ITERATIONS):
            pin.computeJointJacobians(model, data, q)
            error = pin.log6(pin.updateFramePlacement(model, data, self._frame).actInv(target)).vector
            if np.abs(error).max() < _TOLERANCE:
                return q[columns], True
            jacobian = pin.getFrameJacobian(model, data, self._frame, pin.LOCAL)
            step = np.linalg.lstsq(jacobian, error, rcond=1e-6)[0]
            q += step * min(1.0, _LARGEST_STEP / np.abs(step).max())
        return q[columns], False
