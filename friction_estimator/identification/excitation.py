"""Planning of a motion for identification: rest, the Fourier series that identifies best, slow sweeps, rest."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from friction_estimator.errors import ConfigError, InputError
from friction_estimator.identification.excitation_trajectory import (
    FeasibleTrajectories,
    FourierTrajectory,
    MotionLimits,
    choose_harmonics,
    slow_sweeps,
    sweep_duration,
    sweep_reach,
)
from friction_estimator.identification.fixed_base_model import FixedBaseModel
from friction_estimator.identification.joint_log import JointTrajectory
from friction_estimator.identification.rigid_body import base_parameters
from friction_estimator.types import FloatArray, Progress


@dataclass(frozen=True, slots=True)
class ExcitationOptions:
    """Options of a planned motion."""

    duration: float = 10.0  # of the Fourier series [s]
    bandwidth: float = 1.0  # its highest frequency [Hz]
    harmonics: int = 5  # how many, spread evenly up to the bandwidth
    seeds: int = 3  # how many starts of the optimisation; the best one wins
    seed: int = 0  # of the random numbers
    iterations: int = 40  # of the optimisation, at most, for each start
    margin: float = 0.9  # fraction of every limit that is used
    # plateaus of constant velocity, as fractions of the velocity limit
    sweep_levels: tuple[float, ...] = (0.01, 0.03, 0.1)
    dwell: float = 2.0  # duration of a plateau [s]
    known_inertia: bool = False  # only friction will be identified, the URDF's inertia is taken as it is
    rate: float = 100.0  # of the written trajectory [Hz]

    def __post_init__(self) -> None:
        if not 0.0 < self.margin <= 1.0:
            raise ConfigError(f"the margin {self.margin:g} is not a fraction of the limits between 0 and 1")
        if not self.rate >= 10.0 * self.bandwidth > 0.0:
            raise ConfigError(
                f"a rate of {self.rate:g} Hz does not show a motion of up to {self.bandwidth:g} Hz: "
                "the bandwidth must be positive and at most a tenth of the rate"
            )
        if not self.duration > 0.0 or not self.dwell > 0.0 or self.seeds < 1 or self.iterations < 1:
            raise ConfigError("duration, dwell, seeds and iterations must be positive")


@dataclass(frozen=True, slots=True)
class ExcitationPlan(JointTrajectory):
    """A planned trajectory, along which the robot moves while it is recorded."""

    torque: FloatArray  # (N, n) what the URDF's rigid bodies take, friction comes on top [N m or N]
    parameters: tuple[str, ...]  # (p) what can be identified with it
    planned: ExcitationQuality  # quality of the whole trajectory
    random: ExcitationQuality  # median quality of random trajectories of the same kind and within the same limits
    choices: tuple[str, ...]  # what was chosen or assumed, in sentences


ExcitationMotion = tuple[FloatArray, FloatArray, FloatArray]
"""Position, velocity, acceleration, each (N, n)."""

_REST = 0.5
"""Standstill before and after [s]."""
_RAMP = 0.5
"""From rest to the velocity of a sweep [s]."""
_RAMP_PEAK = 1.5  # largest acceleration of a ramp over its mean
_SWEEP_SHARE = 0.4  # of the range that a sweep may take; from any place there is more room towards the middle
_SHRINK_FACTOR = 0.95


def assemble(
    lap: FourierTrajectory, limits: MotionLimits, options: ExcitationOptions
) -> tuple[FloatArray, ExcitationMotion]:
    """Time (N,) and motion of a whole trajectory.

    Plateaus of the sweeps lead towards the middle of the range, slow enough for what room and acceleration there are.
    """
    start = lap.at(np.zeros(1))[0][0]
    fastest, reach_of_one = max(options.sweep_levels, default=0.0), sweep_reach(np.ones(1), options.dwell, _RAMP)[0]
    room = _SWEEP_SHARE * (limits.upper - limits.lower) / reach_of_one
    speed = np.minimum(fastest * limits.velocity, np.minimum(room, limits.acceleration * _RAMP / _RAMP_PEAK))
    direction = np.where(start > 0.5 * (limits.lower + limits.upper), -1.0, 1.0)
    speeds = (np.array(options.sweep_levels) / (fastest or 1.0))[:, None] * direction * speed
    ends = np.cumsum([_REST, lap.duration, sweep_duration(len(speeds), options.dwell, _RAMP), _REST])
    time = np.arange(int(np.ceil(ends[-1] * options.rate)) + 1) / options.rate
    inside = np.clip(time - ends[0], 0.0, lap.duration)
    after = np.clip(time - ends[1], 0.0, ends[2] - ends[1])
    fourier = lap.at(inside)
    sweep = slow_sweeps(start, speeds, options.dwell, _RAMP, after)
    moving = ((time > ends[0]) & (time < ends[1]))[:, None]
    position, velocity, acceleration = (np.where(moving, *pair) for pair in zip(fourier, sweep, strict=True))
    return time, (position, velocity, acceleration)


_RANDOM_STARTS = 20  # looked at before each optimisation; their median is what planning is compared with
_GRID_A_PERIOD = 8  # samples in a period of the highest harmonic: columns of W are band-limited, more adds nothing
_GRADIENT_STEP = 1e-5  # of the finite differences; the variables are of order one
_OVERLOAD_WEIGHT = 10.0  # weight of torque beyond the limits

_RANDOM_MOTIONS = 60
_SCHATTEN_ORDER = 8.0
_SIGN_WIDTH = 0.02  # of the velocity limit: sgn(dq) is smoothed below, so that an optimiser sees its slope
_DEFAULTS = ExcitationOptions()


def optimize_excitation(
    model: FixedBaseModel,
    limits: MotionLimits,
    options: ExcitationOptions = _DEFAULTS,
    progress: Progress | None = None,
) -> ExcitationPlan:
    """Fourier series with the smallest criterion, then slow sweeps in both directions.

    Only the limits of the joints are watched: whether the robot hits itself or its surroundings is not known here.

    Parameters
    ----------
    model : of the robot
    limits : of the same joints
    options : what to plan
    progress : called with the amount of finished work, and with the whole

    Raises
    ------
    InputError
        When model and limits are of different joints.
    ConfigError
        When the duration is too short for the bandwidth, or gravity takes more than the effort limits.
    """
    if model.joint_names != limits.joint_names:
        raise InputError(f"the model has the joints {model.joint_names}, the limits are of {limits.joint_names}")
    planner = _Planner(model, limits.within(options.margin), options)
    best, random = planner.search(progress)
    lap, factor, time, motion, torque = planner.within_effort(best)
    notes = [
        f"harmonics {', '.join(map(str, planner.harmonics.tolist()))} of {1.0 / options.duration:g} Hz; "
        f"{options.margin:.0%} of every limit is used",
        "only the limits of the joints are watched, not collisions: run it slowly and in free space first",
    ]
    if not model.urdf_parameters.any():
        notes.append("the URDF has no masses, so torques were not compared with the effort limits: run it slowly first")
    if factor < 1.0:
        notes.append(f"amplitudes are {factor:.2f} of what the ranges allow, as rigid-body torques meet effort limits")
    return ExcitationPlan(
        joint_names=model.joint_names,
        time=time,
        position=motion[0],
        velocity=motion[1],
        acceleration=motion[2],
        torque=torque,
        parameters=planner.names,
        planned=planner.diagnose(lap),
        random=random,
        choices=(*limits.choices, *notes),
    )


@dataclass(frozen=True, slots=True)
class ExcitationQuality:
    """How well a motion determines the parameters: condition number and size of their standard deviations."""

    condition: float  # condition number of the observation matrix with columns of unit norm
    # mean of ln(sigma) over the parameters' standard deviations when they are made independent, -ln(det(W^T W)) /
    # (2 p), up to a constant: differences between motions are ratios of error bars
    log_sigma: float
    # the condition number in the Schatten norm of order 8, which is above the usual one but has a slope where the
    # smallest singular values cross: an optimiser gets further with it
    smooth_condition: float = float("inf")


class _Planner:
    """Search over trajectories within the limits.

    Columns are those of what will be identified: base inertial parameters, drive inertia, usual friction.

    Attributes
    ----------
    names : (p) of the columns
    harmonics : of the series
    """

    def __init__(self, model: FixedBaseModel, limits: MotionLimits, options: ExcitationOptions) -> None:
        self._model, self._limits, self._options = model, limits, options
        self._generator = np.random.default_rng(options.seed)
        shape = (_RANDOM_MOTIONS, len(limits.joint_names))
        inertia = () if options.known_inertia else model.standard_names
        kinds = ["Ia"] * (not options.known_inertia) + ["coulomb", "viscous", "offset"]
        names = [*inertia, *(f"{kind} {name}" for kind in kinds for name in model.joint_names)]
        W, _ = self._columns(
            self._generator.uniform(limits.lower, limits.upper, shape),
            self._generator.uniform(-limits.velocity, limits.velocity, shape),
            self._generator.uniform(-limits.acceleration, limits.acceleration, shape),
        )
        base = base_parameters(names, W)
        self._kept, self.names = base.kept, base.names
        self.harmonics = choose_harmonics(options.duration, options.bandwidth, options.harmonics)
        self._family = FeasibleTrajectories(options.duration, self.harmonics, limits)
        self._grid = np.linspace(0.0, options.duration, _GRID_A_PERIOD * int(self.harmonics[-1]), endpoint=False)
        self._watch_effort = bool(np.isfinite(limits.effort).any() and model.urdf_parameters.any())

    def search(self, progress: Progress | None) -> tuple[FourierTrajectory, ExcitationQuality]:
        """The best trajectory, and the median of random ones."""
        seeds, iterations = self._options.seeds, self._options.iterations
        drawn = [self._family.random(self._generator) for _ in range(seeds * _RANDOM_STARTS)]
        costs = [self._cost(variables) for variables in drawn]
        starts = [min(range(first, len(drawn), seeds), key=costs.__getitem__) for first in range(seeds)]
        results = []
        for number, start in enumerate(starts):
            steps = itertools.count(number * iterations + 1)
            found = minimize(
                self._cost,
                drawn[start],
                method="L-BFGS-B",
                callback=lambda _, steps=steps: None if progress is None else progress(next(steps), seeds * iterations),
                options={
                    "maxiter": iterations,
                    "maxfun": 10 * iterations * self._family.dimension,
                    "eps": _GRADIENT_STEP,
                },
            )
            results.append((float(found.fun), found.x))
        best = min(results, key=lambda result: result[0])[1]
        compared = [self.diagnose(self._family.trajectory(variables)) for variables in drawn[:_RANDOM_STARTS]]
        median = ExcitationQuality(
            float(np.median([item.condition for item in compared])),
            float(np.median([item.log_sigma for item in compared])),
        )
        return self._family.trajectory(best), median

    def within_effort(
        self, lap: FourierTrajectory
    ) -> tuple[FourierTrajectory, float, FloatArray, ExcitationMotion, FloatArray]:
        """Smaller amplitudes, until the rigid bodies take no more than the efforts of the limits.

        Returns
        -------
        the series, the factor of its amplitudes, time, motion and torque of the whole trajectory

        Raises
        ------
        ConfigError
            When gravity alone takes more.
        """
        limits, factor = self._limits, 1.0
        while factor > _SHRINK_FACTOR**40:
            smaller = lap.scaled(factor)
            time, motion = assemble(smaller, limits, self._options)
            torque = self._model.torque(*motion)
            excess = np.abs(torque).max(axis=0) / limits.effort
            if (excess <= 1.0).all():
                return smaller, factor, time, motion, torque
            factor *= _SHRINK_FACTOR
        worst = int(excess.argmax())
        raise ConfigError(
            f"holding {limits.joint_names[worst]!r} against gravity takes more than its effort limit allows "
            f"({limits.effort[worst]:.3g} N m with the margin): check masses and effort limits of the URDF"
        )

    def diagnose(self, lap: FourierTrajectory) -> ExcitationQuality:
        """Quality of a whole trajectory, sweeps included."""
        time, motion = assemble(lap, self._limits, self._options)
        every = max(int(len(time) / (4 * len(self._grid))), 1)
        return quality(self._columns(*(signal[::every] for signal in motion))[0][:, self._kept])

    def _cost(self, variables: FloatArray) -> float:
        """Ln of the condition number plus mean ln of the error bars, and the torque beyond the effort limits."""
        W, torque = self._columns(*self._family.trajectory(variables).at(self._grid))
        found = quality(W[:, self._kept])
        if not np.isfinite(found.condition):
            return 1e6
        cost = np.log(found.smooth_condition) + found.log_sigma
        if self._watch_effort:
            load = np.abs(torque) / self._limits.effort
            cost += _OVERLOAD_WEIGHT * float((np.maximum(load - 1.0, 0.0) ** 2).mean())
        return float(cost)

    def _columns(
        self, position: FloatArray, velocity: FloatArray, acceleration: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """All columns (N n, p) of a motion, each signal (N, n), and what the URDF's bodies take, (N, n)."""
        samples, n = position.shape
        regressor = self._model.regressor(position, velocity, acceleration)
        sign = velocity / np.sqrt(velocity**2 + (_SIGN_WIDTH * self._limits.velocity) ** 2)
        friction = [signal[:, :, None] * np.eye(n) for signal in (sign, velocity, np.ones_like(velocity))]
        inertia = [] if self._options.known_inertia else [regressor, acceleration[:, :, None] * np.eye(n)]
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
    smooth = ((singular**_SCHATTEN_ORDER).sum() * (singular**-_SCHATTEN_ORDER).sum()) ** (1.0 / _SCHATTEN_ORDER)
    return ExcitationQuality(float(singular[0] / singular[-1]), log_sigma, float(smooth))
