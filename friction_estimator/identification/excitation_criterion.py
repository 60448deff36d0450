"""How well a motion tells the parameters apart: condition number and determinant of its observation matrix."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from friction_estimator.core.types import FloatArray
from friction_estimator.identification.base_parameters import base_parameters
from friction_estimator.identification.fixed_base_model import FixedBaseModel
from friction_estimator.identification.motion_limits import MotionLimits

_RANDOM_MOTIONS = 60
_STANDSTILL = 0.02  # of the velocity limit: sgn(dq) is smoothed below, so that an optimiser sees its slope


@dataclass(frozen=True, slots=True)
class ExcitationQuality:
    """How good a motion is for identification.

    Attributes
    ----------
    condition : condition number of the observation matrix with columns of unit norm, as a fit tells it
    log_sigma : mean of ln(sigma) over the parameters' standard deviations when they are made independent,
        -ln(det(W^T W)) / (2 p), up to a constant: differences between motions are ratios of error bars
    """

    condition: float
    log_sigma: float


class ExcitationCriterion:
    """Observation matrices of what will be identified: base inertial parameters, drive inertia, usual friction.

    Parameters
    ----------
    model : of the robot
    limits : of its joints; velocities and accelerations of the random motions that show what can be told apart
    known_inertia : only friction will be identified
    generator : of these motions

    Attributes
    ----------
    names : (p) of the columns
    """

    def __init__(
        self, model: FixedBaseModel, limits: MotionLimits, known_inertia: bool, generator: np.random.Generator
    ) -> None:
        self._model, self._known_inertia = model, known_inertia
        self._standstill = _STANDSTILL * limits.velocity
        shape = (_RANDOM_MOTIONS, len(limits.joint_names))
        W = self._all_columns(
            generator.uniform(limits.lower, limits.upper, shape),
            generator.uniform(-limits.velocity, limits.velocity, shape),
            generator.uniform(-limits.acceleration, limits.acceleration, shape),
        )
        base = base_parameters(self._all_names(), W)
        self._kept, self.names = base.kept, base.names

    def observation(self, position: FloatArray, velocity: FloatArray, acceleration: FloatArray) -> FloatArray:
        """Observation matrix (N n, p) of a motion, each signal (N, n)."""
        return self._all_columns(position, velocity, acceleration)[:, self._kept]

    def _all_names(self) -> tuple[str, ...]:
        joints = self._model.joint_names
        kinds = ("coulomb", "viscous", "offset") if self._known_inertia else ("drive", "coulomb", "viscous", "offset")
        standard = () if self._known_inertia else self._model.standard_names
        return (*standard, *(f"{kind} {joint}" for kind in kinds for joint in joints))

    def _all_columns(self, position: FloatArray, velocity: FloatArray, acceleration: FloatArray) -> FloatArray:
        samples, n = position.shape
        sign = velocity / np.sqrt(velocity**2 + self._standstill**2)
        diagonals = [sign, velocity, np.ones_like(velocity)]
        parts = []
        if not self._known_inertia:
            parts.append(self._model.regressor(position, velocity, acceleration))
            diagonals.insert(0, acceleration)
        parts += [signal[:, :, None] * np.eye(n) for signal in diagonals]
        return np.concatenate(parts, axis=2).reshape(samples * n, -1)


def quality(W: FloatArray) -> ExcitationQuality:
    """What an observation matrix (r, p) promises; infinite where it cannot tell its parameters apart."""
    norms = np.linalg.norm(W, axis=0)
    if W.shape[0] < W.shape[1] or not norms.all():
        return ExcitationQuality(float("inf"), float("inf"))
    singular = np.linalg.svd(np.linalg.qr(W / norms, mode="r"), compute_uv=False)
    if singular[-1] <= np.finfo(float).eps * singular[0]:
        return ExcitationQuality(float("inf"), float("inf"))
    log_sigma = -float((np.log(singular).sum() + np.log(norms).sum()) / W.shape[1])
    return ExcitationQuality(float(singular[0] / singular[-1]), log_sigma)
