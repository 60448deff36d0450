"""Results as flat records, in a JSON file or averaged over the seeds."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from friction_estimator.errors import InputError
from friction_estimator.io.documents import write_atomically
from friction_estimator.types import FloatArray

Numbers = tuple[float, ...]
"""One number per column of the tables."""

TRUE_STATES = "true states"
"""Stands for the noise level of the oracle: clean sensors, and the states from the simulator."""
_DIGITS = 5


@dataclass(frozen=True, slots=True)
class Score:
    """Errors of one method in one run.

    Attributes
    ----------
    case, noise, seed : the run
    method : observer, or reference
    phase : ``stance``, ``swing``, ...
    rmse, truth_rms, bias : [N m]
    nees : mean of (error / sigma)^2
    inside : part of the samples with (error / sigma)^2 below the 95 % quantile of chi-square, one degree of freedom
    """

    case: str
    noise: str
    seed: int
    method: str
    phase: str
    rmse: Numbers
    truth_rms: Numbers
    bias: Numbers = ()
    nees: Numbers = ()
    inside: Numbers = ()


@dataclass(frozen=True, slots=True)
class PushScore:
    """External torque of one push.

    Attributes
    ----------
    start : of the push [s]
    joint : the one with the largest true external torque
    truth, estimate : its external torque when the push ends [N m]
    delay : from the start to the first detection [s]; NaN: not detected
    false_alarms : part of the samples far from all pushes with a detection
    """

    case: str
    noise: str
    seed: int
    method: str
    start: float
    joint: str
    truth: float
    estimate: float
    delay: float
    false_alarms: float


@dataclass(frozen=True, slots=True)
class BaseScore:
    """Base state: root mean square errors of velocity [m/s] and tilt [rad] an axis, position error at the end [m]."""

    case: str
    noise: str
    seed: int
    velocity: float
    tilt: float
    drift: float


@dataclass(frozen=True, slots=True)
class Failure:
    """A run that could not be made."""

    case: str
    noise: str
    seed: int
    message: str


@dataclass(frozen=True, slots=True)
class Results:
    """Everything, or the part of one job; ``settings`` are the options of the command."""

    settings: dict[str, Any] = field(default_factory=dict)
    labels: tuple[str, ...] = ()
    scores: tuple[Score, ...] = ()
    pushes: tuple[PushScore, ...] = ()
    bases: tuple[BaseScore, ...] = ()
    failures: tuple[Failure, ...] = ()


_RECORDS = {"scores": Score, "pushes": PushScore, "bases": BaseScore, "failures": Failure}


def merge(settings: dict[str, Any], parts: Iterable[Results]) -> Results:
    """All parts as one, in an order that does not depend on which job was done first."""
    together: dict[str, list[Any]] = {name: [] for name in _RECORDS}
    labels: tuple[str, ...] = ()
    for part in parts:
        labels = part.labels or labels
        for name, records in together.items():
            records += getattr(part, name)
    ordered = {name: tuple(sorted(records, key=_identity)) for name, records in together.items()}
    return Results(settings=settings, labels=labels, **ordered)


def _identity(record: Any) -> tuple[Any, ...]:
    """Case, noise, seed, method and phase of a record."""
    names = ("case", "noise", "seed", "method", "phase", "start")
    return tuple(getattr(record, name) for name in names if hasattr(record, name))


def write_json(results: Results, path: Path) -> None:
    """Write them with five digits, NaN as null, one record per line."""
    lines = [f'"settings": {json.dumps(results.settings)}', f'"labels": {json.dumps(results.labels)}']
    for name in _RECORDS:
        rows = (json.dumps(_plain(dataclasses.asdict(record))) for record in getattr(results, name))
        lines.append(f'"{name}": [\n' + ",\n".join(rows) + "\n]")
    write_atomically(path, "{\n" + ",\n".join(lines) + "\n}\n")


def read_json(path: Path) -> Results:
    """Read what :func:`write_json` wrote.

    Raises
    ------
    InputError
        When the file is something else.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        records = {
            name: tuple(kind(**{key: _restored(value) for key, value in row.items()}) for row in document[name])
            for name, kind in _RECORDS.items()
        }
        return Results(settings=document["settings"], labels=tuple(document["labels"]), **records)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path} does not hold the results of this benchmark: {error}") from None


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}") if math.isfinite(value) else None
    return value


def _restored(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_restored(item) for item in value)
    return math.nan if value is None else value


SMALL = 0.01
"""Friction below this is nothing that an error could be a part of [N m]."""
Key = tuple[str, str, str, str]
"""Case, noise, method, phase."""


@dataclass(frozen=True, slots=True)
class Summary:
    """One method on one case at one noise level in one phase, (g,) a column; means over the seeds.

    Attributes
    ----------
    rmse, spread : [N m]; the spread is half of the largest difference between two seeds, NaN for a single seed
    relative : rmse by the root mean square of the truth; NaN where the truth is next to nothing
    bias : mean error [N m], averaged as a magnitude so that seeds do not cancel
    nees, inside : see :class:`Score`
    """

    rmse: FloatArray
    spread: FloatArray
    relative: FloatArray
    bias: FloatArray
    nees: FloatArray
    inside: FloatArray


def summarise(results: Results) -> dict[Key, Summary]:
    """All scores, seeds taken together."""
    grouped: dict[Key, list[Score]] = {}
    for score in results.scores:
        grouped.setdefault((score.case, score.noise, score.method, score.phase), []).append(score)
    return {key: _summary(scores) for key, scores in grouped.items()}


def _summary(scores: list[Score]) -> Summary:
    rmse, truth = np.array([s.rmse for s in scores]), np.array([s.truth_rms for s in scores]).mean(axis=0)
    mean = rmse.mean(axis=0)
    many = len(scores) > 1
    none = np.full(mean.shape, np.nan)
    return Summary(
        rmse=mean,
        spread=0.5 * np.ptp(rmse, axis=0) if many else none,
        relative=np.divide(mean, truth, out=none.copy(), where=truth > SMALL),
        bias=np.abs(_stacked(s.bias for s in scores)).mean(axis=0) if scores[0].bias else none,
        nees=_stacked(s.nees for s in scores).mean(axis=0) if scores[0].nees else none,
        inside=_stacked(s.inside for s in scores).mean(axis=0) if scores[0].inside else none,
    )


def _stacked(rows: Iterable[tuple[float, ...]]) -> FloatArray:
    return np.array(list(rows))


def truth_rms(results: Results, case: str, phase: str) -> tuple[float, ...]:
    """Root mean square of the true friction of a case, (g)."""
    rows = [
        score.truth_rms
        for score in results.scores
        if (score.case, score.phase) == (case, phase) and score.noise != TRUE_STATES
    ]
    return numbers(np.array(rows).mean(axis=0)) if rows else ()


def numbers(values: FloatArray) -> Numbers:
    """As they travel in a record."""
    return tuple(float(value) for value in values)
