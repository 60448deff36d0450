"""Claims about the compiled kernels on a stretch of walking: plain Python says the same, and nothing compiles late."""

from __future__ import annotations

import dataclasses
import os
import pickle
import subprocess
import sys
from operator import attrgetter
from pathlib import Path

import numpy as np
import pytest

from friction_estimator.estimation.pipeline import Pipeline
from friction_estimator.estimation.smoothing import SmoothedEstimator
from friction_estimator.kernels import compiler
from friction_estimator.types import FrictionEstimate, Vector
from test.feeding import feed

walks = pytest.importorskip("benchmarks.speed.yardsticks", reason="MuJoCo is not installed")
pytest.importorskip("numba", reason="numba is not installed: there are no compiled kernels to compare with")

ROOT = Path(__file__).resolve().parents[2]
OBSERVERS = ("kalman", "fbse", "momentum")
SMOOTHER = "smoothed kalman"
WALKING, LAST = 1200, 1500


def run(folder: str) -> None:
    """What the subprocesses do: estimate, and save what came out and the signatures of each kernel."""
    walk: walks.Walk = pickle.loads((Path(folder) / "walk").read_bytes())
    compiler.prepare()
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
        [kernel.py_func.__name__ for kernel, _ in compiler.ENTRY_POINTS if len(kernel.signatures) != 1], dtype=str
    )
    saved["compiled"] = np.array(compiler.COMPILED)
    np.savez(Path(folder) / f"compiled={compiler.COMPILED}.npz", **saved)


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
    code = "import sys; from test.kernels.test_compiler import run; run(sys.argv[1])"
    command = [sys.executable, "-c", code, str(folder)]
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


def test_an_entry_point_refuses_arguments_without_the_number_of_their_axes():
    def mean(values: np.ndarray, weights: Vector) -> float:
        return float(values @ weights)

    with pytest.raises(TypeError, match="mean: the type of the argument values is np.ndarray"):
        compiler.entry_point(mean)
