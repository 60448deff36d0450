"""Claims about the compiled kernels on a stretch of walking: plain Python says the same, and nothing compiles late."""

from __future__ import annotations

import dataclasses
import os
import pickle
import subprocess
import sys
import time
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from friction_estimator import compiled, records
from friction_estimator.estimation.pipeline import Pipeline
from friction_estimator.estimation.smoothing import SmoothedEstimator
from friction_estimator.types import Flags, FrictionEstimate, Indices, Matrix, Vector
from test.feeding import feed

walks = pytest.importorskip("benchmarks.speed.yardsticks", reason="MuJoCo is not installed")
pytest.importorskip("numba", reason="numba is not installed: there are no compiled kernels to compare with")

ROOT = Path(__file__).resolve().parent.parent
OBSERVERS = ("kalman", "fbse", "momentum")
SMOOTHER = "smoothed kalman"
WALKING, LAST = 1200, 1500


def run(folder: str) -> None:
    """What the subprocesses do: estimate, and save what came out and the signatures of each kernel."""
    walk: walks.Walk = pickle.loads((Path(folder) / "walk").read_bytes())
    compiled.prepare()
    saved: dict[str, np.ndarray] = {}
    for observer in (*OBSERVERS, SMOOTHER):
        estimates = smoothed(walk) if observer == SMOOTHER else estimated(walk, observer)
        for name in (
            "friction",
            "sigma",
            "model",
            "law.parameters",
            "law.parameters_sigma",
            "external_torque",
            "nis",
        ):
            saved[f"{observer} {name}"] = np.array(list(map(attrgetter(name), estimates)))
        saved[f"{observer} pose"] = np.array([base_of(one) for one in estimates])
    saved["late"] = np.array(
        [kernel.py_func.__name__ for kernel, _ in compiled.ENTRY_POINTS if len(kernel.signatures) != 1], dtype=str
    )
    saved["compiled"] = np.array(compiled.COMPILED)
    np.savez(Path(folder) / f"compiled={compiled.COMPILED}.npz", **saved)


def estimated(walk: walks.Walk, observer: str) -> list[FrictionEstimate]:
    pipeline = Pipeline(dataclasses.replace(walk.robot.config, observer=observer), walk.robot.urdf_xml)
    return [pipeline.step(frame) for frame in walk.frames()[WALKING:]]


def smoothed(walk: walks.Walk) -> list[FrictionEstimate]:
    """Read as a bag is read."""
    estimator = SmoothedEstimator(walk.robot.config, walk.robot.urdf_xml, lag=0.1)
    return feed(estimator, walk.samples[WALKING:]) + estimator.flush()


def base_of(estimate: FrictionEstimate) -> np.ndarray:
    base = estimate.base
    return np.concatenate([base.position_base_in_world, base.rotation_base_to_world.ravel(), base.linear_velocity])


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Outputs with compiled kernels and in plain Python, side by side on the same frames."""
    folder = tmp_path_factory.mktemp("walk")
    (folder / "walk").write_bytes(pickle.dumps(walks.simulate("suralp", "walk", LAST)))
    command = [sys.executable, "-c", "import sys; from test.test_compiled import run; run(sys.argv[1])", str(folder)]
    both = [
        subprocess.Popen(command, cwd=ROOT, env={**os.environ, "NUMBA_DISABLE_JIT": switched_off})
        for switched_off in ("0", "1")
    ]
    assert [process.wait() for process in both] == [0, 0]
    with np.load(folder / "compiled=True.npz") as fast, np.load(folder / "compiled=False.npz") as plain:
        return dict(fast), dict(plain)


def test_plain_python_gives_the_same(outputs) -> None:
    fast, plain = outputs
    for observer in (*OBSERVERS, SMOOTHER):
        assert np.isfinite(fast[f"{observer} friction"]).any(axis=0).all()
        for name, values in plain.items():
            if name.startswith(f"{observer} "):
                scale = max(float(np.nanmax(np.abs(values))), 1.0)
                np.testing.assert_allclose(fast[name], values, rtol=0.0, atol=1e-12 * scale, err_msg=name)


def test_no_kernel_compiles_in_the_middle_of_a_run(outputs) -> None:
    """Arguments of other types than stated would stop the estimator for seconds."""
    assert outputs[0]["late"].size == 0, outputs[0]["late"]


def doubled(x: float) -> float:
    return 2.0 * x


def multiplied(x: float) -> float:
    return LAST * x  # another constant, hence another cache


@pytest.mark.skipif(not compiled.COMPILED, reason=compiled.NOT_COMPILED)
def test_a_new_kernel_removes_the_caches_that_were_not_used_for_weeks(tmp_path, monkeypatch) -> None:
    for name, value in {
        "__file__": str(tmp_path / "compiled.py"),
        "ENTRY_POINTS": [],
        "_prepared": 0,
        "_grown": set(),
    }.items():
        monkeypatch.setattr(compiled, name, value)
    compiled.entry_point(doubled)
    compiled.prepare()
    caches = tmp_path / "__pycache__"
    (used,) = caches.iterdir()
    unused, recent, other = (caches / name for name in ("kernels-unused", "kernels-recent", "unused"))
    for folder in (unused, recent, other):
        (folder / "machine code").mkdir(parents=True)
    weeks_ago = time.time() - 35 * 24 * 3600.0
    for folder in (used, unused, other):
        os.utime(folder, (weeks_ago, weeks_ago))
    compiled.entry_point(doubled)
    compiled.prepare()
    assert {*caches.iterdir()} == {used, unused, recent, other}
    compiled.entry_point(multiplied)
    compiled.prepare()
    (new,) = {*caches.iterdir()} - {used, recent, other}
    assert new.name.startswith("kernels-") and new != unused


@records.unbuffered_record
class Sized(NamedTuple):
    values: Indices
    size: int


@records.record
class Pair(NamedTuple):
    first: Vector
    second: Matrix
    flags: Flags
    counts: bool
    inner: Sized


@records.record
class Ends(NamedTuple):
    first: Vector
    last: Vector


@compiled.entry_point
def scaled_sum(pair: Pair, factor: float, sized: Sized) -> float:
    pair.second[0, 1] = factor * (pair.first[0] + pair.second[0, 0]) if pair.counts and pair.flags[2] else sized.size
    return pair.second.sum() + sized.values.sum()


def test_a_kernel_cuts_the_buffer_of_a_tuple_and_refuses_another():
    flags, inner = np.array([False, False, True]), Sized(np.arange(2), 3)
    buffer, pair = records.pack(Pair(np.array([1.0, 2.0]), np.array([[4.0, 0.0]]), flags, True, inner))
    assert scaled_sum(buffer, 2.0, np.arange(3), 3) == 4.0 + 10.0 + 3.0
    assert pair.second[0, 1] == 10.0 and pair.inner.size == 3 and pair.flags.tolist() == flags.tolist()
    with pytest.raises(TypeError, match="class Pair"):
        scaled_sum(records.packed(inner), 2.0, np.arange(3), 3)


def test_an_entry_point_refuses_arguments_without_the_number_of_their_axes():
    def mean(values: np.ndarray, weights: Vector) -> float:
        return float(values @ weights)

    with pytest.raises(TypeError, match="mean: the type of the argument values is np.ndarray"):
        compiled.entry_point(mean)


def test_a_buffer_is_that_of_a_tuple_only_while_all_arrays_are_its_views():
    buffer, one = records.allocate(Ends, 2, 3)
    assert records.buffer_of(one) is buffer
    moved = one._replace(last=np.ones(3))
    np.testing.assert_array_equal(records.view(Ends, records.buffer_of(moved)).last, 1.0)
    new = records.RecordTemplate(moved).new()
    assert records.buffer_of(new) is new.buffer and len(list(new)) == 2 and new.last.tolist() == [1.0, 1.0, 1.0]
    with pytest.raises(TypeError, match="Vector has 1"):
        records.packed(Ends(np.zeros((1, 2)), np.zeros(3)))
