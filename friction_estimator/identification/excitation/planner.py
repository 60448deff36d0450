"""What to move before recording: trajectories that make the parameters visible, within the limits of the joints."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import minimize

from friction_estimator.errors import InputError
from friction_estimator.identification.excitation.assembly import assemble, shrink_to_effort
from friction_estimator.identification.excitation.criterion import ExcitationCriterion, ExcitationQuality, quality
from friction_estimator.identification.excitation.feasible_trajectories import FeasibleTrajectories
from friction_estimator.identification.excitation.fourier_trajectory import FourierTrajectory, choose_harmonics
from friction_estimator.identification.excitation.motion_limits import MotionLimits
from friction_estimator.identification.excitation.plan import ExcitationOptions, ExcitationPlan
from friction_estimator.identification.rigid_body.fixed_base_model import FixedBaseModel
from friction_estimator.types import FloatArray

_RANDOM_STARTS = 20  # looked at before each optimisation; their median is what planning is compared with
_GRID = 8  # samples in one period of the highest harmonic: every column of W is band-limited, more adds nothing
_STEP = 1e-5  # of the finite differences; the variables are of order one
_OVERLOAD = 10.0  # weight of torque beyond the limits

_DEFAULTS = ExcitationOptions()

Progress = Callable[[float, float], None]


def plan_excitation(
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
    progress : called now and then with how much is done and how much there is

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
    lap, factor = shrink_to_effort(best, model, planner.limits, options)
    time, motion = assemble(lap, planner.limits, options)
    return ExcitationPlan(
        joint_names=model.joint_names,
        time=time,
        position=motion[0],
        velocity=motion[1],
        acceleration=motion[2],
        torque=model.torque(*motion),
        parameters=planner.criterion.names,
        planned=planner.diagnose(lap),
        random=random,
        choices=(*limits.choices, *_in_words(model, options, planner.harmonics.tolist(), factor)),
    )


class _Planner:
    """Search over trajectories within the limits."""

    def __init__(self, model: FixedBaseModel, limits: MotionLimits, options: ExcitationOptions) -> None:
        self.limits, self._options = limits, options
        self._generator = np.random.default_rng(options.seed)
        self.criterion = ExcitationCriterion(model, limits, options.known_inertia, self._generator)
        self.harmonics = choose_harmonics(options.duration, options.bandwidth, options.harmonics)
        self._family = FeasibleTrajectories(options.duration, self.harmonics, limits)
        self._grid = np.linspace(0.0, options.duration, _GRID * int(self.harmonics[-1]), endpoint=False)
        self._watch_effort = bool(np.isfinite(limits.effort).any() and model.urdf_parameters.any())

    def search(self, progress: Progress | None) -> tuple[FourierTrajectory, ExcitationQuality]:
        """The best trajectory, and the median of random ones."""
        seeds, iterations = self._options.seeds, self._options.iterations
        drawn = [self._family.random(self._generator) for _ in range(seeds * _RANDOM_STARTS)]
        costs = [self._cost(variables) for variables in drawn]
        starts = [min(range(first, len(drawn), seeds), key=costs.__getitem__) for first in range(seeds)]
        results = []
        for number, start in enumerate(starts):
            steps = _Steps(number * iterations, seeds * iterations, progress)
            found = minimize(
                self._cost,
                drawn[start],
                method="L-BFGS-B",
                callback=steps,
                options={"maxiter": iterations, "maxfun": 10 * iterations * self._family.dimension, "eps": _STEP},
            )
            results.append((float(found.fun), found.x))
        best = min(results, key=lambda result: result[0])[1]
        compared = [self.diagnose(self._family.trajectory(variables)) for variables in drawn[:_RANDOM_STARTS]]
        median = ExcitationQuality(
            float(np.median([item.condition for item in compared])),
            float(np.median([item.log_sigma for item in compared])),
        )
        return self._family.trajectory(best), median

    def diagnose(self, lap: FourierTrajectory) -> ExcitationQuality:
        """Quality of a whole trajectory, sweeps included."""
        time, motion = assemble(lap, self.limits, self._options)
        every = max(int(len(time) / (4 * len(self._grid))), 1)
        return quality(self.criterion.observation(*(signal[::every] for signal in motion)))

    def _cost(self, variables: FloatArray) -> float:
        motion = self._family.trajectory(variables).at(self._grid)
        W, torque = self.criterion.observation_and_torque(*motion)
        found = quality(W)
        if not np.isfinite(found.condition):
            return 1e6
        cost = {
            "condition": np.log(found.smooth_condition),
            "determinant": found.log_sigma,
            "balanced": np.log(found.smooth_condition) + found.log_sigma,
        }[self._options.criterion]
        if self._watch_effort:
            load = np.abs(torque) / self.limits.effort
            cost += _OVERLOAD * float((np.maximum(load - 1.0, 0.0) ** 2).mean())
        return float(cost)


class _Steps:
    """Counts the iterations of one start."""

    def __init__(self, done: int, total: int, progress: Progress | None) -> None:
        self._done, self._total, self._progress = done, total, progress

    def __call__(self, variables: FloatArray) -> None:
        self._done += 1
        if self._progress is not None:
            self._progress(self._done, self._total)


def _in_words(model: FixedBaseModel, options: ExcitationOptions, harmonics: list[int], factor: float) -> list[str]:
    said = [
        f"harmonics {', '.join(map(str, harmonics))} of {1.0 / options.duration:g} Hz; "
        f"{options.margin:.0%} of every limit is used",
        "only the limits of the joints are watched, not collisions: run it slowly and in free space first",
    ]
    if not model.urdf_parameters.any():
        said.append("the URDF has no masses, so nobody knows whether the torques stay within the effort limits")
    if factor < 1.0:
        said.append(f"amplitudes are {factor:.2f} of what the ranges allow, as rigid-body torques meet effort limits")
    return said
