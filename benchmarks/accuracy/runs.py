"""The work: every case is simulated once for each noise level and seed, and all observers share the recording."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from typing import Any

from benchmarks.accuracy.oracle import law_scores, method_scores
from benchmarks.accuracy.results import BaseScore, Failure, PushScore, Results, Score
from benchmarks.accuracy.scoring import RunName, base_score, push_scores, track_scores
from benchmarks.accuracy.wiener import wiener_scores
from benchmarks.shared.estimates import JointGroups, configure, estimate, joint_groups
from benchmarks.shared.walks import find_case, simulate
from friction_estimator.errors import FrictionEstimatorError
from friction_estimator.io.robot import Robot, load_robot
from friction_estimator.robot.model import RobotModel

CLEAN = "clean"


@dataclass(frozen=True, slots=True)
class Job:
    """Work of one process.

    Attributes
    ----------
    robot, case, noise, seed, duration : the run; ``duration`` in seconds
    observers : names of ``Config.observer``
    changes : parameters that differ from the robot's YAML
    references : noise levels of the Wiener bound, computed together with the errors with true states;
        empty: run the observers instead
    """

    robot: str
    case: str
    noise: str
    seed: int
    duration: float
    observers: tuple[str, ...]
    changes: Mapping[str, Any] = field(default_factory=dict)
    references: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """For the progress line."""
        return f"{self.case} references" if self.references else f"{self.case} {self.noise} seed {self.seed}"


def make_jobs(
    robot: str,
    cases: Sequence[str],
    noises: Sequence[str],
    observers: Sequence[str],
    seeds: int,
    duration: float,
    changes: Mapping[str, Any],
) -> list[Job]:
    """All jobs, those of each case together; clean sensors need one seed only, unless the model is drawn too."""
    jobs = []
    for case in cases:
        wrong_model, pushed = find_case(case).wrong_inertia, bool(find_case(case).scenario(duration).pushes)
        if not wrong_model and not pushed:  # references have the true model and know no pushes: they are the walk's
            jobs.append(Job(robot, case, CLEAN, 0, duration, tuple(observers), changes, references=tuple(noises)))
        for noise in noises:
            count = 1 if noise == CLEAN and not wrong_model else seeds
            jobs += [Job(robot, case, noise, seed, duration, tuple(observers), changes) for seed in range(count)]
    return jobs


def perform(job: Job) -> Results:
    """Do one job."""
    robot = load_robot(job.robot)
    model = RobotModel(robot.config, robot.urdf_xml)
    groups = joint_groups(model.joint_names, model.limb)
    return (_refer if job.references else _estimate)(job, robot, model, groups)


def _estimate(job: Job, robot: Robot, model: RobotModel, groups: JointGroups) -> Results:
    case, name = find_case(job.case), RunName(job.case, job.noise, job.seed)
    run = simulate(robot, model, case.scenario(job.duration), job.noise, job.seed)
    urdf = case.estimator_urdf(robot.urdf_xml, job.seed)
    scores: list[Score] = []
    pushes: list[PushScore] = []
    bases: list[BaseScore] = []
    for observer in job.observers:
        track = estimate(configure(job.robot, job.noise, {**job.changes, "observer": observer}), urdf, run)
        scores += track_scores(name, observer, groups, run, track)
        if run.scenario.pushes:
            pushed, after = push_scores(name, observer, groups, run, track)
            pushes, scores = pushes + pushed, scores + after
        bases = bases or [base_score(name, run, track)]  # no observer changes it
    return Results({}, groups.labels, tuple(scores), tuple(pushes), tuple(bases))


def _refer(job: Job, robot: Robot, model: RobotModel, groups: JointGroups) -> Results:
    scenario = find_case(job.case).scenario(job.duration)
    clean = simulate(robot, model, scenario, CLEAN, 0)
    scores = law_scores(job.case, clean, groups)
    for observer in job.observers:
        config = configure(job.robot, CLEAN, {**job.changes, "observer": observer})
        scores += method_scores(job.case, config, robot, clean, model.limb, groups)
    noisy = {noise: simulate(robot, model, scenario, noise, 0) for noise in job.references if noise != CLEAN}
    scores += wiener_scores(job.robot, job.case, clean, noisy, model, groups)
    return Results(labels=groups.labels, scores=tuple(scores))


def perform_all(jobs: Sequence[Job], processes: int, progress: Callable[[str], None]) -> Iterator[Results]:
    """Do all jobs in parallel; results come as they are ready, and what goes wrong is a record among them."""
    start = time.monotonic()
    with ProcessPoolExecutor(processes) as pool:
        waiting = {pool.submit(perform, job): job for job in jobs}
        for done, future in enumerate(as_completed(waiting), start=1):
            error, job = future.exception(), waiting[future]
            results = Results(failures=(_failure(job, error),)) if error else future.result()
            left = (time.monotonic() - start) / done * (len(jobs) - done) / 60.0
            failed = "".join(f" FAILED: {failure.message}" for failure in results.failures)
            progress(f"[{done}/{len(jobs)}] {job.title}{failed}, {left:.0f} min left")
            yield results


def _failure(job: Job, error: BaseException) -> Failure:
    """A fall or a refused configuration in its own words; anything else is a defect and named as one."""
    message = str(error) if isinstance(error, FrictionEstimatorError) else f"{type(error).__name__}: {error}"
    return Failure(job.case, job.noise, job.seed, message)
