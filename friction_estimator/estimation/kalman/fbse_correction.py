"""Correction by the friction of the instant, for joints so near to rest that the law has no sure sign there.

A joint that crosses zero, or sticks and chatters, turns its friction around within milliseconds. No filter follows, and
the law follows only as well as the velocity is known. But while its foot stands firmly, foot-base sensor estimation
(Hashlamon & Erbatur 2014, section 5) measures the friction of the instant: noisy, and far better than an unknown sign.
Both are weighed by their variances, so that elsewhere it does not count. A foot that lands, lifts off or chatters
is no firm ground to the method: it moves, and errors are newton metres.
"""

from __future__ import annotations

from friction_estimator.compiled import kernel
from friction_estimator.config import Config, SensorNoise
from friction_estimator.estimation.observers.fbse import FootBaseSensorEstimation
from friction_estimator.robot.model import RobotModel
from friction_estimator.types import Attitude, BoolArray, ContactPhase, Dynamics, FloatArray, SensorFrame

CORRECTION_THRESHOLD = 0.2
"""Friction whose standard deviation from the velocity is below this is not corrected [N m]: the method is noisier."""


@kernel("V V V V B V V")
def weigh_measurement(
    friction: FloatArray,
    velocity_variance: FloatArray,
    measured: FloatArray,
    sigma: FloatArray,
    known: BoolArray,
    calibration_torque: FloatArray,
    calibration_variance: FloatArray,
) -> None:
    """Weigh the estimate (n,) against the measurement where that is known, in place.

    Parameters
    ----------
    friction, velocity_variance : estimate, and the part of its variance that the uncertain velocity makes
    measured, sigma, known : of :class:`~friction_estimator.types.MeasuredFriction`
    calibration_torque, calibration_variance : torque that the other errors of model and sensors make
    """
    for joint in range(friction.size):
        if known[joint]:
            variance = sigma[joint] ** 2 + calibration_variance[joint]
            gain = velocity_variance[joint] / (velocity_variance[joint] + variance)
            friction[joint] += gain * (measured[joint] - calibration_torque[joint] - friction[joint])
            velocity_variance[joint] *= 1.0 - gain


class FbseCorrection:
    """Corrects an estimate whose error comes from an uncertain velocity.

    Parameters
    ----------
    config : ``fbse``, ``sensors``
    robot : the model that also made the :class:`Dynamics`
    """

    def __init__(self, config: Config, robot: RobotModel) -> None:
        self._useful = bool(robot.base_dofs) and bool(robot.foot_names)
        self._observer = FootBaseSensorEstimation(config, robot)

    def reset(self) -> None:
        """Begin anew."""
        self._observer.reset()

    def retune(self, noise: SensorNoise) -> None:
        """Use the standard deviations of this noise from now on."""
        self._observer.retune(noise)

    def correct(
        self,
        friction: FloatArray,
        velocity_variance: FloatArray,
        frame: SensorFrame,
        wrenches: FloatArray,
        attitude: Attitude,
        phase: ContactPhase,
        dynamics: Dynamics,
        calibration: tuple[FloatArray, FloatArray],
    ) -> tuple[FloatArray, FloatArray]:
        """Weigh the estimate against the measurement of the instant.

        Parameters
        ----------
        friction : (n,) the estimate [N m]
        velocity_variance : (n,) the part of its variance that the uncertain velocity makes, zero where nothing shall be
            corrected [(N m)^2]
        wrenches : (k, 6) of the ground on the feet, calibrated
        frame, attitude, phase, dynamics : outputs of the stages before
        calibration : torque that the other errors of model and sensors make, and its variance, (n,), (n,)

        Returns
        -------
        friction, velocity_variance : (n,), (n,) what is left of it
        """
        if not self._useful or max(velocity_variance.tolist()) < CORRECTION_THRESHOLD**2:
            return friction, velocity_variance
        measured = self._observer.measure(frame, wrenches, attitude, phase, dynamics)
        corrected, left = friction.copy(), velocity_variance.copy()
        weigh_measurement(
            corrected, left, measured.friction, measured.sigma, measured.available, calibration[0], calibration[1]
        )
        return corrected, left
