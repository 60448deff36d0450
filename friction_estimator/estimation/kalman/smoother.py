"""Fixed-lag smoother of the Kalman stage, for recordings: every estimate also uses later samples.

frames ─► motion smoother ─► the same stage, with history ─► WindowSmoother: backward sweep ─► friction, law, sigma
          half a second ahead                                a lag ahead

The velocities are smoothed first, because the law at a noisy velocity near zero is the largest error of the live stage.
Every filter of the bank of motion filters is stationary, and so is its Rauch-Tung-Striebel smoother: one constant gain
(Rauch, Tung & Striebel 1965, eq. 3.28). The filters are weighed by how well they have predicted the readings before and
after.
"""

from __future__ import annotations

import dataclasses
import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_discrete_lyapunov

from friction_estimator.compiled import kernel
from friction_estimator.config import Config, KalmanConfig, SensorNoise
from friction_estimator.estimation.health import Health
from friction_estimator.estimation.kalman.frame_friction import ANYWHERE
from friction_estimator.estimation.kalman.history import Snapshot, sweep
from friction_estimator.estimation.kalman.joint_motion import (
    TRANSITION,
    WHITE_JERK,
    JointMotion,
    MotionBank,
    MotionModels,
    advance_bank,
    reading_noise,
    stationary_covariance,
    weighted_motion,
)
from friction_estimator.estimation.kalman.limb_filter import LimbFilter
from friction_estimator.estimation.kalman.limb_state import Limb, joint_state_indices, law_bounds, within_bounds
from friction_estimator.estimation.kalman.stage import KalmanFriction
from friction_estimator.estimation.visited_velocities import VisitedVelocities
from friction_estimator.laws.joint_laws import JointLaws
from friction_estimator.robot.model import RobotModel
from friction_estimator.robot.transmission import Transmission
from friction_estimator.types import (
    Attitude,
    ContactPhase,
    Dynamics,
    FloatArray,
    IntArray,
    JointFriction,
    LawEstimate,
    SensorFrame,
)

MOTION_MEMORY = 0.1
"""Time over which the motion models are compared, before and after each reading [s]: shorter than a step."""


@dataclass(frozen=True, slots=True)
class StationarySmoothers:
    """Stationary Rauch-Tung-Striebel smoothers of ``b`` jerk densities, for the state ``[q, dq dt, ddq dt^2]``.

    Attributes
    ----------
    gain : (b, 3, 3) from the correction of the next state to that of this one
    velocity_variance : (b,) of the smoothed ``dq dt``
    """

    gain: FloatArray
    velocity_variance: FloatArray


def stationary_smoothers(
    densities: FloatArray, position_std: float, velocity_std: float, dt: float
) -> StationarySmoothers:
    """Gains and covariances from the Riccati equation of every jerk density; parameters as of the filters."""
    C, R = np.eye(2, 3), reading_noise(position_std, velocity_std, dt)
    gains, variances = [], []
    for density in densities:
        P_predicted = stationary_covariance(TRANSITION, density * dt**5 / position_std**2 * WHITE_JERK, R)
        S = C @ P_predicted @ C.T + np.diag(R)
        P = P_predicted - P_predicted @ C.T @ np.linalg.solve(S, C @ P_predicted)
        A = np.linalg.solve(P_predicted, TRANSITION @ P).T
        smoothed = solve_discrete_lyapunov(A, P - A @ P_predicted @ A.T)
        gains.append(A)
        variances.append(smoothed[1, 1] * position_std**2)
    return StationarySmoothers(np.array(gains), np.array(variances))


@dataclass(frozen=True, slots=True)
class _Filtered:
    """State of the bank after a reading: state (b, 3, n), log-likelihood (b, n) of the readings so far, faded."""

    dt: float
    state: FloatArray
    log_likelihood: FloatArray


@kernel("T T T f8")
def smoothed_before(state: FloatArray, after: FloatArray, gain: FloatArray, dt: float) -> FloatArray:
    """Smoothed states (m, 3, n) from the filtered ones of the same instant and the smoothed ones of the next.

    ``x_s(t) = x(t) + A (x_s(t + dt) - F x(t))`` for the state ``[q, dq dt, ddq dt^2]`` of every model (Rauch, Tung &
    Striebel 1965, eq. 3.28).
    """
    m, _, n = state.shape
    smoothed = np.empty((m, 3, n))
    for model in range(m):
        A = gain[model]
        for joint in range(n):
            q, dq, ddq = state[model, 0, joint], state[model, 1, joint] * dt, state[model, 2, joint] * dt * dt
            c0 = after[model, 0, joint] - (q + dq + 0.5 * ddq)
            c1 = after[model, 1, joint] * dt - (dq + ddq)
            c2 = after[model, 2, joint] * dt * dt - ddq
            smoothed[model, 0, joint] = q + A[0, 0] * c0 + A[0, 1] * c1 + A[0, 2] * c2
            smoothed[model, 1, joint] = (dq + A[1, 0] * c0 + A[1, 1] * c1 + A[1, 2] * c2) / dt
            smoothed[model, 2, joint] = (ddq + A[2, 0] * c0 + A[2, 1] * c1 + A[2, 2] * c2) / (dt * dt)
    return smoothed


class MotionSmoother:
    """The bank, forward and backward; the models do not interact, so that every filter has one smoother.

    Readings go in with :meth:`step`; :meth:`smoothed` gives the motion of the oldest ones by all of them.

    Parameters
    ----------
    config : ``jerk_densities``
    noise : of the joint positions and velocities
    """

    def __init__(self, config: KalmanConfig, noise: SensorNoise) -> None:
        self._bank = MotionBank(MotionModels(np.array(config.jerk_densities), np.zeros(0)), noise)
        self.retune(noise)
        self.reset()

    def retune(self, noise: SensorNoise) -> None:
        """Use the gains of this noise from now on, backward too."""
        self._bank.retune(noise)
        self._smoothers: dict[int, StationarySmoothers] = {}

    def reset(self) -> None:
        """Forget all readings."""
        self._state: FloatArray | None = None
        self._filtered: list[_Filtered] = []

    def step(self, position: FloatArray, velocity: FloatArray, dt: float) -> None:
        """Use one reading."""
        if self._state is None or dt == 0.0:
            self._state = self._bank.begin(position, velocity)
            self._log_likelihood = np.zeros((self._bank.count, position.size))
        else:
            filters, state = self._bank.filters(dt), self._state.copy()
            distance = np.empty_like(self._log_likelihood)
            gains = filters.transition, filters.gain, filters.information
            advance_bank(state, position, velocity, dt, *gains, distance)
            newest = -0.5 * (distance + filters.log_determinant[:, None])
            self._state = state
            self._log_likelihood = math.exp(-dt / MOTION_MEMORY) * self._log_likelihood + newest
        self._filtered.append(_Filtered(dt, self._state, self._log_likelihood))

    def smoothed(self, count: int) -> list[JointMotion]:
        """Hand out the oldest ``count`` instants, smoothed with all readings there are."""
        filtered = self._filtered
        result: list[JointMotion] = []
        state = filtered[-1].state
        later = np.zeros_like(filtered[-1].log_likelihood)
        for index in range(len(filtered) - 1, -1, -1):
            now = filtered[index]
            if index < len(filtered) - 1:
                after = filtered[index + 1]
                keep = math.exp(-after.dt / MOTION_MEMORY)
                gain = self._smoothers_for(after.dt).gain
                state = smoothed_before(now.state, state, gain, after.dt)
                later = keep * (later + after.log_likelihood - keep * now.log_likelihood)
            if index < count:
                result.append(self._motion(now, state, now.log_likelihood + later))
        del filtered[:count]
        return result[::-1]

    def _motion(self, now: _Filtered, state: FloatArray, log_likelihood: FloatArray) -> JointMotion:
        if now.dt == 0.0:
            return self._bank.first_motion(now.state)
        variance = self._smoothers_for(now.dt).velocity_variance / now.dt**2
        weight = np.exp(log_likelihood - log_likelihood.max(axis=0))
        out = np.empty((4, state.shape[2]))
        weighted_motion(state, weight / weight.sum(axis=0), variance, out)
        return JointMotion(*out)

    def _smoothers_for(self, dt: float) -> StationarySmoothers:
        key, period = self._bank.nearby_period(dt)
        if key not in self._smoothers:
            self._smoothers[key] = stationary_smoothers(
                self._bank.models.jerk_densities, self._bank.position_std, self._bank.velocity_std, period
            )
        return self._smoothers[key]


@dataclass(frozen=True, slots=True)
class _Sensed:
    """A frame and what was computed from it before the friction."""

    frame: SensorFrame
    attitude: Attitude
    phase: ContactPhase
    dynamics: Dynamics


@dataclass(frozen=True, slots=True)
class FilteredFrame:
    """A frame that the stage has used.

    Attributes
    ----------
    time : since the restart [s]
    sensed : the frame
    unmodelled_variance : (n,) of the torque that neither law nor calibration represents [(N m)^2]
    strain, unknown : (n, s) Dahl strains of the motors, and what is left of their errors at the start
    motion : smoothed
    friction : output of the stage
    """

    time: float
    sensed: _Sensed
    unmodelled_variance: FloatArray
    strain: FloatArray
    unknown: FloatArray
    motion: JointMotion
    friction: JointFriction


@dataclass(frozen=True, slots=True)
class SmoothedWindows:
    """Law and model error at the ends of windows.

    Attributes
    ----------
    laws : friction laws of the motors and the terms of presliding
    motors : that move the joints
    time : (w,) increasing [s]
    parameters : (w, n, p) of the laws, motor by motor, within their bounds
    model_error : (w, n) motor by motor [N m]
    covariance : (w, n, g (p + 1), g (p + 1)) of both, of the g motors that act on each joint
    visited : velocities of the motors up to the newest sample
    """

    laws: JointLaws
    motors: Transmission
    time: FloatArray
    parameters: FloatArray
    model_error: FloatArray
    covariance: FloatArray
    visited: VisitedVelocities

    def at(
        self, frames: Sequence[FilteredFrame], model_error_variance: FloatArray, ripples: FloatArray
    ) -> tuple[dict[str, FloatArray], list[LawEstimate]]:
        """Fields of ``JointFriction`` at some frames (f), each (f, n), and the law of each frame.

        Parameters
        ----------
        model_error_variance : (n,) of the law while nothing is measured [(N m)^2]
        ripples : (n,) periods of the motors' friction in a turn, or (0,)
        """
        times = np.array([frame.time for frame in frames])
        row = self._nearest(times)
        laws = [LawEstimate(*columns) for columns in zip(*self._described(), strict=True)]
        parameters, covariance = self.parameters[row], self.covariance[row]
        model_error = np.stack([np.interp(times, self.time, column) for column in self.model_error.T], axis=1)
        velocity = np.array([frame.motion.velocity for frame in frames])
        std = np.array([frame.motion.velocity_std for frame in frames])
        effort, position = (
            np.array([getattr(f.sensed.frame, name) for f in frames]) for name in ("effort", "position")
        )
        strain, unknown = (np.array(rows) for rows in zip(*((f.strain, f.unknown) for f in frames), strict=True))
        motors = self.motors
        angle = motors.velocity(position) * ripples if ripples.size else None
        wave = None if angle is None else np.stack((np.sin(angle), np.cos(angle)), axis=-1)
        regressor, torque, variance = self.laws.expected_friction(
            parameters, motors.velocity(velocity), motors.torque(effort), motors.velocity_std(std), strain, wave
        )
        variance += ANYWHERE * (unknown * parameters[..., self.laws.added["presliding"]]).sum(axis=-1) ** 2
        model = motors.at_joints(torque)
        velocity_variance = motors.variance_at_joints(variance) + np.array(
            [frame.unmodelled_variance for frame in frames]
        )
        law_variance = motors.law_variance(regressor, covariance)
        full = motors.friction_variance(regressor, covariance)
        return {
            "friction": model + motors.at_joints(model_error),
            "sigma": np.sqrt(full + velocity_variance),
            "model": model,
            "model_sigma": np.sqrt(law_variance + model_error_variance + velocity_variance),
        }, [laws[at] for at in row.tolist()]

    def _nearest(self, times: FloatArray) -> IntArray:
        return np.searchsorted(0.5 * (self.time[1:] + self.time[:-1]), times)

    def _described(self) -> tuple[FloatArray, ...]:
        """Fields of :class:`LawEstimate`, one row a window."""
        motors, parameters, covariance = self.motors, self.parameters, self.covariance
        coulomb, viscous = (np.einsum("np,wnp->wn", rows, parameters) for rows in self.visited.rows)
        rows = (
            motors.spread(self.visited.rows[0], 0.0, np.abs(motors.weights)),
            motors.spread(self.visited.rows[1], 0.0, motors.weights**2),
        )
        coulomb_variance, viscous_variance, cross = (
            np.einsum("ni,wnij,nj->wn", left, covariance, right)
            for left, right in ((rows[0], rows[0]), (rows[1], rows[1]), rows)
        )
        own = np.diagonal(covariance, axis1=2, axis2=3)[..., : self.laws.own_count]
        return (
            np.ascontiguousarray(parameters[..., : self.laws.own_count]),
            np.sqrt(np.maximum(own, 0.0)),
            motors.coulomb_at_joints(coulomb),
            motors.viscous_at_joints(viscous),
            np.sqrt(np.maximum(coulomb_variance, 0.0)),
            np.sqrt(np.maximum(viscous_variance, 0.0)),
            cross,
            np.tile(self.visited.velocity_range, (len(parameters), 1, 1)),
        )


class WindowSmoother:
    """Sweeps backward over the records of all limbs.

    Parameters
    ----------
    laws : of the motors, with the terms of presliding
    motors : that move the joints
    limbs : whose filters they are
    visited : velocities of the motors
    """

    def __init__(
        self, laws: JointLaws, motors: Transmission, limbs: Sequence[Limb], visited: VisitedVelocities
    ) -> None:
        self._laws, self._motors, self._limbs, self._visited = laws, motors, limbs, visited
        self._bounds = law_bounds(laws)

    def sweep(self, filters: Sequence[LimbFilter], until: float) -> SmoothedWindows | None:
        """Smooth all windows up to a time [s], and drop their records but the newest; None without any window."""
        swept = [sweep(limb_filter.history or [], until) for limb_filter in filters]
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
            own = joint_state_indices(m, 0, m, p)
            joint[:, limb.joints] = np.array([state for _, state, _ in windows])[:, own]
            columns = self._motors.select(limb.joints).columns(own)
            blocks = np.array([P[columns[:, :, None], columns[:, None, :]] for _, _, P in windows])
            covariance[:, limb.joints] = blocks
        law = within_bounds(
            np.ascontiguousarray(joint[..., :p]).reshape(-1, p),
            np.ascontiguousarray(covariance[..., :p, :p]).reshape(-1, p, p),
            self._bounds,
        )
        times = np.array([time for time, _, _ in swept[0]])
        return SmoothedWindows(
            self._laws, self._motors, times, law.reshape(w, n, p), joint[..., p], covariance, self._visited
        )


def _drop(limb_filter: LimbFilter, until: float) -> None:
    """Records before the newest smoothed snapshot are done with; that one begins the next block."""
    records = limb_filter.history
    assert records is not None
    done = [row for row, record in enumerate(records) if isinstance(record, Snapshot) and record.time <= until]
    del records[: done[-1]]


_MOTION_MEMORIES = 5.0
"""Velocities are smoothed with this many ``MOTION_MEMORY`` of later readings: the bank remembers nothing longer."""
_BLOCK = 0.5
"""Work is done in blocks of this length, or of half a lag [s]."""


class SmoothedMotions:
    """Motion source of the stage: motions that have been smoothed already.

    Parameters
    ----------
    smoother : of the motions
    """

    def __init__(self, smoother: MotionSmoother) -> None:
        self._smoother = smoother
        self.motions: deque[JointMotion] = deque()

    def reset(self) -> None:
        """The smoother restarts by itself."""

    def retune(self, noise: SensorNoise, encoder_step: FloatArray) -> None:
        """For the readings that are not smoothed yet; they count as white noise, rounded ones too."""
        self._smoother.retune(noise)

    def step(self, position: FloatArray, velocity: FloatArray, dt: float) -> JointMotion:
        """The next motion."""
        return self.motions.popleft()


class KalmanSmoother:
    """Fixed-lag smoother of the Kalman stage.

    Parameters
    ----------
    config : ``observer: kalman``
    robot : the model that also makes the :class:`Dynamics`
    lag : every sample is estimated with at least this much of what came later; ``inf``: with all of it [s]
    health : gets the events of the stage
    """

    def __init__(self, config: Config, robot: RobotModel, lag: float, health: Health) -> None:
        self._motion = MotionSmoother(config.kalman, config.sensors)
        self._given = SmoothedMotions(self._motion)
        self.stage = KalmanFriction(config, robot, health, self._given, history=True)
        self._motors = robot.motors
        self._ahead = _MOTION_MEMORIES * MOTION_MEMORY
        self._lag = lag
        self._block = max(_BLOCK, 0.5 * lag)
        self._clear()

    def _clear(self) -> None:
        self._motion.reset()
        self._sensed: list[_Sensed] = []
        self._passed: list[FilteredFrame] = []
        self._waiting = 0.0

    def reset(self) -> None:
        """Restart; what waits is lost, law and calibration stay."""
        self._clear()
        self.stage.reset()
        for limb_filter in self.stage.bank.filters:
            if limb_filter.history is not None:
                limb_filter.history.clear()

    def step(
        self, frame: SensorFrame, attitude: Attitude, phase: ContactPhase, dynamics: Dynamics
    ) -> list[JointFriction]:
        """Use one frame; what it completes, oldest first. Flush before a frame with ``dt == 0``."""
        self._motion.step(frame.position, frame.velocity, frame.dt)
        self._sensed.append(_Sensed(frame, attitude, phase, dynamics))
        self._waiting += frame.dt
        if self._waiting < self._ahead + _BLOCK:
            return []
        self._pass(len(self._sensed) - round(self._ahead / self._waiting * len(self._sensed)))
        if self.stage.time - self._passed[0].time < self._lag + self._block:
            return []
        return self._smooth(self.stage.time - self._lag)

    def flush(self) -> list[JointFriction]:
        """Everything that waits: the recording has ended, or has a gap here."""
        if self._sensed:
            self._pass(len(self._sensed))
        finished = self._smooth(math.inf) if self._passed else []
        self.reset()
        return finished

    def _pass(self, count: int) -> None:
        """Let the stage use the oldest frames."""
        ready, self._sensed = self._sensed[:count], self._sensed[count:]
        for sensed, motion in zip(ready, self._motion.smoothed(count), strict=True):
            ripples = self.stage.ripples
            self._use(sensed, motion)
            if self.stage.ripples is not ripples:  # the filters have started anew: all that waits can know the ripple
                passed, self._passed = self._passed, []
                self.stage.reset()
                for one in passed:
                    self._use(one.sensed, one.motion)
        self._waiting = sum(sensed.frame.dt for sensed in self._sensed)

    def _use(self, sensed: _Sensed, motion: JointMotion) -> None:
        """Let the stage use one frame."""
        self._given.motions.append(motion)
        friction = self.stage.step(sensed.frame, sensed.attitude, sensed.phase, sensed.dynamics)
        stage = self.stage
        state = stage.unmodelled_variance, stage.strain.copy(), stage.unknown.copy()
        self._passed.append(FilteredFrame(stage.time, sensed, *state, motion, friction))

    def _smooth(self, until: float) -> list[JointFriction]:
        """Hand out the frames up to a time."""
        count = sum(passed.time <= until for passed in self._passed)
        ready, self._passed = self._passed[:count], self._passed[count:]
        self.stage.finish_pending_updates()
        bank = self.stage.bank
        smoother = WindowSmoother(self.stage.terms, self._motors, bank.limbs, bank.visited)
        windows = smoother.sweep(bank.filters, until)
        return self._frictions(ready, windows) if windows is not None else [passed.friction for passed in ready]

    def _frictions(self, ready: list[FilteredFrame], windows: SmoothedWindows) -> list[JointFriction]:
        values, laws = windows.at(ready, self.stage.model_error_variance, self.stage.ripples)
        return [
            dataclasses.replace(passed.friction, law=law, **{name: column[row] for name, column in values.items()})
            for row, (passed, law) in enumerate(zip(ready, laws, strict=True))
        ]
