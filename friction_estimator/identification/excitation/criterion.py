"""How well a motion identifies the parameters: condition number and determinant of its observation matrix."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from friction_estimator.identification.excitation.motion_limits import MotionLimits
from friction_estimator.identification.rigid_body.base_parameters import base_parameters
from friction_estimator.identification.rigid_body.fixed_base_model import FixedBaseModel
from friction_estimator.types import FloatArray

_RANDOM_MOTIONS = 60
_SCHATTEN = 8.0
_STANDSTILL = 0.02  # of the velocity limit: sgn(dq) is smoothed below, so that an optimiser sees its slope


@dataclass(frozen=True, slots=True)
class ExcitationQuality:
    """How good a motion is for identification.

    Attributes
    ----------
    condition : condition number of the observation matrix with columns of unit norm
    log_sigma : mean of ln(sigma) over the parameters' standard deviations when they are made independent,
        -ln(det(W^T W)) / (2 p), up to a constant: differences between motions are ratios of error bars
    smooth_condition : the condition number in the Schatten norm of order 8, which is above the usual one but has a
        slope where the smallest singular values cross: an optimiser gets further with it
    """

    condition: float
    log_sigma: float
    smooth_condition: float = float("inf")


class ExcitationCriterion:
    """Observation matrices of what will be identified: base inertial parameters, drive inertia, usual friction.

    Parameters
    ----------
    model : of the robot
    limits : of its joints; velocities and accelerations of the random motions that show what can be identified
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
        W, _ = self._all_columns(
            generator.uniform(limits.lower, limits.upper, shape),
            generator.uniform(-limits.velocity, limits.velocity, shape),
            generator.uniform(-limits.acceleration, limits.acceleration, shape),
        )
        base = base_parameters(self._all_names(), W)
        self._kept, self.names = base.kept, base.names

    def observation(self, position: FloatArray, velocity: FloatArray, acceleration: FloatArray) -> FloatArray:
        """Observation matrix (N n, p) of a motion, each signal (N, n)."""
        return self._all_columns(position, velocity, acceleration)[0][:, self._kept]

    def observation_and_torque(
        self, position: FloatArray, velocity: FloatArray, acceleration: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Observation matrix (N n, p) of a motion, and what the URDF's rigid bodies take, (N, n) [N m]."""
        W, torque = self._all_columns(position, velocity, acceleration)
        return W[:, self._kept], torque

    def _all_names(self) -> tuple[str, ...]:
        joints = self._model.joint_names
        kinds = ("coulomb", "viscous", "offset") if self._known_inertia else ("drive", "coulomb", "viscous", "offset")
        standard = () if self._known_inertia else self._model.standard_names
        return (*standard, *(f"{kind} {joint}" for kind in kinds for joint in joints))

    def _all_columns(
        self, position: FloatArray, velocity: FloatArray, acceleration: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        samples, n = position.shape
        regressor = self._model.regressor(position, velocity, acceleration)
        sign = velocity / np.sqrt(velocity**2 + self._standstill**2)
        friction = [signal[:, :, None] * np.eye(n) for signal in (sign, velocity, np.ones_like(velocity))]
        inertia = [] if self._known_inertia else [regressor, acceleration[:, :, None] * np.eye(n)]
        W = np.concatenate([*inertia, *friction], axis=2).reshape(samples * n, -1)
        return W, regressor @ self._model.urdf_parameters


def quality(W: FloatArray) -> ExcitationQuality:
    """Quality of an observation matrix (r, p); infinite where its parameters cannot be identified."""
    norms = np.linalg.norm(W, axis=0)
    if W.shape[0] < W.shape[1] or not norms.all():
        return ExcitationQuality(float("inf"), float("inf"))
    singular = np.linalg.svd(np.linalg.qr(W / norms, mode="r"), compute_uv=False)
    if singular[-1] <= np.finfo(float).eps * singular[0]:
        return ExcitationQuality(float("inf"), float("inf"))
    log_sigma = -float((np.log(singular).sum() + np.log(norms).sum()) / W.shape[1])
    smooth = ((singular**_SCHATTEN).sum() * (singular**-_SCHATTEN).sum()) ** (1.0 / _SCHATTEN)
    return ExcitationQuality(float(singular[0] / singular[-1]), log_sigma, float(smooth))
