"""One frame: friction of the laws, external torque, pushes, and the sample that the next window gets."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from friction_estimator.arrays import allocate, arrays
from friction_estimator.compiled import kernel
from friction_estimator.config import Config, SensorNoise
from friction_estimator.estimation.kalman.disturbance import (
    CORRELATED,
    GAINS,
    DisturbanceMemory,
    calibrate_wrenches,
    step_disturbance,
    watch_pushes,
)
from friction_estimator.estimation.kalman.joint_friction import (
    FrameFriction,
    LawMemory,
    combine_law_and_model_error,
    frame_friction,
    law_at_motion,
)
from friction_estimator.estimation.kalman.joint_motion import JointMotion
from friction_estimator.estimation.kalman.limb_estimates import limb_estimates
from friction_estimator.estimation.kalman.limb_state import Limb
from friction_estimator.estimation.kalman.windows import write_sample
from friction_estimator.estimation.observers.momentum import (
    Inputs,
    ResidualTable,
    ResidualVariances,
    initial_residual,
)
from friction_estimator.laws.joint_laws import LawTable
from friction_estimator.robot.model import RobotModel
from friction_estimator.robot.transmission import MotorTable
from friction_estimator.types import (
    Attitude,
    BoolArray,
    Dynamics,
    Flags,
    FloatArray,
    Indices,
    Matrix,
    SensorFrame,
    Vector,
)

_ROWS = len(FrameFriction._fields)


@arrays
class RobotTable(NamedTuple):
    """Constants of the robot.

    Attributes
    ----------
    motors : maps between motors and joints
    residual : of the momentum observer
    limb_of_joint : (n,) number of each joint's limb
    """

    motors: MotorTable
    residual: ResidualTable
    limb_of_joint: Indices


@arrays
class FrameSettings(NamedTuple):
    """What holds for one frame, or for longer, apart from its readings.

    Attributes
    ----------
    ripples : (n,) periods of the motors' friction in a turn; (0,) without ripple
    unmodelled : (n,) variance of the torque that no term represents [(N m)^2]
    angular_acceleration : (3,) of the base, base axes [rad/s^2]
    oldest : a model error that was found before has no meaning any more [s]
    interval : time since the frame before, without the noise of its stamp [s]
    """

    ripples: Vector
    unmodelled: Vector
    angular_acceleration: Vector
    oldest: float
    interval: float


@arrays
class FrameOutput(NamedTuple):
    """Results of one frame.

    Attributes
    ----------
    rows : (14, n) fields of :class:`FrameFriction`
    regressor : (n, p) of the laws, mean over the uncertain velocity, motor by motor
    wrenches : (k, 6) of the ground on the feet, calibrated [N, N m]
    measured : (n,) True where measurements are behind the friction
    pushed : (n,) True while the limb of a joint is pushed, and a little longer
    sample : row of the buffer of windows
    """

    rows: Matrix
    regressor: Matrix
    wrenches: Matrix
    measured: Flags
    pushed: Flags
    sample: Vector


@kernel(
    "RobotTable LawTable V Dynamics JointMotion Inputs FrameSettings LawMemory DisturbanceMemory FrameOutput",
    unchecked=True,
)
def evaluate_frame(
    robot: RobotTable,
    laws: LawTable,
    estimated: FloatArray,
    dynamics: Dynamics,
    motion: JointMotion,
    inputs: Inputs,
    settings: FrameSettings,
    law_memory: LawMemory,
    memory: DisturbanceMemory,
    out: FrameOutput,
) -> tuple[float, int]:
    """Friction, external torque and pushes of one frame.

    Parameters
    ----------
    estimated : buffer of :func:`limb_estimates`

    Returns
    -------
    Largest variance that the friction of the instant may correct [(N m)^2], NaN where a result is not finite; and the
    limbs whose push has lasted too long to be one, as bits
    """
    n, p = laws.scales.shape
    estimates = limb_estimates(estimated, n, p, len(inputs.wrenches), robot.motors.group.shape[1])
    now = frame_friction(out.rows)
    law = law_at_motion(
        laws, robot.motors, estimates, motion, dynamics.position, inputs.effort, settings.interval, settings.ripples,
        law_memory, out.regressor,
    )  # fmt: skip
    out.wrenches[:] = calibrate_wrenches(inputs.wrenches, estimates)
    calibrated = Inputs(inputs.effort, out.wrenches, inputs.imu_fresh, inputs.wrench_fresh, inputs.dt)
    large = step_disturbance(dynamics, calibrated, robot.residual, motion, law, estimates, memory, now)
    lasting = watch_pushes(large, robot.limb_of_joint, inputs.dt, memory, out.pushed)
    for joint in range(n):
        out.measured[joint] = estimates.measured_at[joint] > settings.oldest and not out.pushed[joint]
        law.torque[joint] += estimates.one_sided[joint]
    unmodelled = settings.unmodelled + estimates.one_sided_variance
    largest = combine_law_and_model_error(law, unmodelled, out.measured, out.pushed, now)
    write_sample(
        out.sample, dynamics, motion, inputs, settings.angular_acceleration, out.pushed, law.regressor_variance,
        law.regressor,
    )  # fmt: skip
    return largest, lasting


class FrameEvaluation:
    """Evaluates the frames of a robot.

    Parameters
    ----------
    config : ``momentum.input_hold``, ``sensors``
    robot : the model that also made the :class:`Dynamics`
    limbs : joints that are judged together

    Attributes
    ----------
    law_memory : what the laws of one frame leave to the next
    pushed : (n,) joints that something pushes in the newest frame
    """

    def __init__(self, config: Config, robot: RobotModel, limbs: tuple[Limb, ...]) -> None:
        n, count = len(robot.joint_names), len(limbs)
        limb_of_joint = np.zeros(n, dtype=np.int64)
        for number, limb in enumerate(limbs):
            limb_of_joint[limb.joints] = number
        residual = ResidualTable(robot.limb, GAINS[0], config.momentum.inputs_are_held, robot.base_dofs)
        self._table = RobotTable(robot.motors.table, residual, limb_of_joint)
        self._variances = [ResidualVariances(config.sensors, gain, robot) for gain in GAINS]
        _, self._memory = allocate(DisturbanceMemory, (5, n), (2, n), n, n, (2, n), count, count, count)
        self.law_memory = LawMemory.initial(n, 0)

    def retune(self, noise: SensorNoise) -> None:
        """Use the standard deviations of this noise from now on."""
        for variances in self._variances:
            variances.retune(noise)

    def reset(self, distances: int) -> None:
        """Begin anew, with this number of presliding distances."""
        memory, n = self._memory, self._memory.expected.size
        self.law_memory = LawMemory.initial(n, distances)
        for part in memory:
            part[:] = np.nan
        memory.residual[:] = initial_residual(n)
        for variances in self._variances:
            variances.reset()
        self.forget_pushes()

    def forget_pushes(self) -> None:
        """Nothing has pushed."""
        self._memory.since_push[:] = self._memory.since_release[:] = math.inf
        self._memory.pushed_for[:] = 0.0
        self.pushed: BoolArray = np.zeros(self._memory.expected.size, dtype=bool)

    def leave_presliding(self) -> None:
        """Forget the strains."""
        none = np.zeros((self._memory.expected.size, 0))
        self.law_memory = self.law_memory._replace(strain=none, initial_strain_weight=none)

    def step(
        self,
        frame: SensorFrame,
        attitude: Attitude,
        dynamics: Dynamics,
        motion: JointMotion,
        laws: LawTable,
        estimated: FloatArray,
        settings: FrameSettings,
        sample: FloatArray,
    ) -> tuple[FrameFriction, FrameOutput, float, int]:
        """Use one frame.

        Parameters
        ----------
        laws, estimated, settings : see :func:`evaluate_frame`
        sample : row of the buffer of windows, written here

        Returns
        -------
        Friction, further results, and the results of :func:`evaluate_frame`
        """
        n, p = laws.scales.shape
        for row, variances in enumerate(self._variances):
            if variances.due(frame.dt):
                variances.compute(frame, dynamics, CORRELATED * float((motion.velocity_std**2).mean()))
                self._memory.variance[row] = variances.white
        measured, pushed = np.empty((2, n), dtype=bool)
        rows, regressor, wrenches = np.empty((_ROWS, n)), np.empty((n, p)), np.empty(frame.wrenches.shape)
        out = FrameOutput(rows, regressor, wrenches, measured, pushed, sample)
        inputs = Inputs(frame.effort, frame.wrenches, frame.imu_fresh, frame.wrench_fresh, frame.dt)
        largest, lasting = evaluate_frame(
            self._table, laws, estimated, dynamics, motion, inputs, settings, self.law_memory, self._memory, out
        )
        self.pushed = pushed
        return FrameFriction(*rows), out, largest, lasting
