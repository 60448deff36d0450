"""From the records of the limbs' filters to smoothed law and mismatch of all joints, and to friction at any frame."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from friction_estimator.core.friction.joint_laws import JointLaws
from friction_estimator.core.kalman.adjoint import Snapshot, sweep
from friction_estimator.core.kalman.bounds import law_bounds, within_bounds
from friction_estimator.core.kalman.limbs import Limb
from friction_estimator.core.kalman.motion_bank import JointMotion
from friction_estimator.core.kalman.traced_filter import TracedLimbFilter
from friction_estimator.core.motor_side import MotorSide
from friction_estimator.core.types import FloatArray, IntArray, JointFriction


@dataclass(frozen=True, slots=True)
class Passed:
    """A frame that the traced stage has used.

    Attributes
    ----------
    time : since the restart [s]
    effort : (n,) motor torques [N m]
    motion : smoothed
    friction : what the stage said
    """

    time: float
    effort: FloatArray
    motion: JointMotion
    friction: JointFriction


@dataclass(frozen=True, slots=True)
class SmoothedWindows:
    """Law and mismatch at the ends of windows.

    Attributes
    ----------
    laws : friction laws of the motors
    motors : that move the joints
    time : (w,) increasing [s]
    parameters : (w, n, p) of the laws, motor by motor, within their bounds
    mismatch : (w, n) motor by motor [N m]
    covariance : (w, n, g (p + 1), g (p + 1)) of both, of the g motors that act on each joint
    """

    laws: JointLaws
    motors: MotorSide
    time: FloatArray
    parameters: FloatArray
    mismatch: FloatArray
    covariance: FloatArray

    def at(self, frames: Sequence[Passed], mismatch_variance: FloatArray, load_error: float) -> dict[str, FloatArray]:
        """Fields of ``JointFriction`` at some frames (f), each (f, n) or (f, n, p).

        Parameters
        ----------
        mismatch_variance : (n,) of what the law misses when nothing is measured [(N m)^2]
        load_error : part of the motor torque that nothing explains
        """
        times = np.array([frame.time for frame in frames])
        row = self._nearest(times)
        parameters, covariance = self.parameters[row], self.covariance[row]
        mismatch = np.stack([np.interp(times, self.time, column) for column in self.mismatch.T], axis=1)
        velocity = np.array([frame.motion.velocity for frame in frames])
        std = np.array([frame.motion.velocity_std for frame in frames])
        effort = np.array([frame.effort for frame in frames])
        motors = self.motors
        regressor, torque, variance = self.laws.expected_friction(
            parameters, motors.velocity(velocity), motors.torque(effort), motors.velocity_std(std)
        )
        model = motors.at_joints(torque)
        velocity_variance = motors.variance_at_joints(variance) + (load_error * effort) ** 2
        law_variance = motors.law_variance(regressor, covariance)
        full = motors.friction_variance(regressor, covariance)
        return {
            "friction": model + motors.at_joints(mismatch),
            "sigma": np.sqrt(full + velocity_variance),
            "model": model,
            "model_sigma": np.sqrt(law_variance + mismatch_variance + velocity_variance),
            **self._described(parameters, covariance),
        }

    def _nearest(self, times: FloatArray) -> IntArray:
        return np.searchsorted(0.5 * (self.time[1:] + self.time[:-1]), times)

    def _described(self, parameters: FloatArray, covariance: FloatArray) -> dict[str, FloatArray]:
        laws, motors = self.laws, self.motors
        coulomb, viscous = np.abs(motors.weights), motors.weights**2
        own = np.diagonal(covariance, axis1=2, axis2=3)[..., : laws.parameter_count]
        return {
            "parameters": parameters,
            "parameters_sigma": np.sqrt(np.maximum(own, 0.0)),
            "coulomb": motors.coulomb_at_joints(laws.coulomb(parameters)),
            "viscous": motors.viscous_at_joints(laws.viscous(parameters)),
            "coulomb_sigma": np.sqrt(motors.law_variance(laws.coulomb_weights, covariance, coulomb)),
            "viscous_sigma": np.sqrt(motors.law_variance(laws.viscous_weights, covariance, viscous)),
        }


class WindowSmoother:
    """Sweeps backward over the records of all limbs.

    Parameters
    ----------
    laws : of the motors
    motors : that move the joints
    limbs : whose filters they are
    """

    def __init__(self, laws: JointLaws, motors: MotorSide, limbs: Sequence[Limb]) -> None:
        self._laws, self._motors, self._limbs = laws, motors, limbs
        self._bounds = law_bounds(laws)

    def sweep(self, filters: Sequence[TracedLimbFilter], until: float) -> SmoothedWindows | None:
        """Smooth all windows up to a time [s], and drop their records but the newest; None without any window."""
        swept = [sweep(limb_filter.records, until) for limb_filter in filters]
        if not swept[0]:
            return None
        for limb_filter in filters:
            _drop(limb_filter, until)
        n, p, w = len(self._laws.law_names), self._laws.parameter_count, len(swept[0])
        joint = np.zeros((w, n, p + 1))
        q = self._motors.group.shape[1] * (p + 1)
        covariance = np.zeros((w, n, q, q))
        for limb, windows in zip(self._limbs, swept, strict=True):
            m = limb.joints.size
            own = np.concatenate((m + np.arange(m * p).reshape(m, p), np.arange(m)[:, None]), axis=1)
            joint[:, limb.joints] = np.array([state for _, state, _ in windows])[:, own]
            columns = self._motors.select(limb.joints).columns(own)
            blocks = np.array([P[columns[:, :, None], columns[:, None, :]] for _, _, P in windows])
            covariance[:, limb.joints] = blocks
        law = within_bounds(
            joint[..., :p].reshape(-1, p),
            covariance[..., :p, :p].reshape(-1, p, p),
            np.tile(self._bounds, (w, 1, 1)),
        )
        times = np.array([time for time, _, _ in swept[0]])
        return SmoothedWindows(self._laws, self._motors, times, law.reshape(w, n, p), joint[..., p], covariance)


def _drop(limb_filter: TracedLimbFilter, until: float) -> None:
    """Records before the newest smoothed snapshot are done with; that one begins the next block."""
    records = limb_filter.records
    done = [row for row, record in enumerate(records) if isinstance(record, Snapshot) and record.time <= until]
    del records[: done[-1]]
