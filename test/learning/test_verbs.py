"""train and evaluate from the command line."""

import sys

import numpy as np
import pytest

from friction_estimator.cli.main import main
from friction_estimator.learning.network import RobotIdentity
from friction_estimator.learning.training_data import SignalRecording


def test_without_jax_train_names_the_extra(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "jax", None)
    monkeypatch.delitem(sys.modules, "friction_estimator.learning.training", raising=False)
    assert main(["train", str(tmp_path), "-o", str(tmp_path / "model.safetensors")]) == 1
    assert f"'jax' is missing: {sys.executable} -m pip install 'jax>=" in capsys.readouterr().err


def test_without_onnx_train_names_the_extra_before_the_work(tmp_path, capsys, monkeypatch):
    pytest.importorskip("jax", reason="JAX is not installed (extra training): nothing can be trained")
    monkeypatch.setitem(sys.modules, "onnx", None)
    monkeypatch.delitem(sys.modules, "friction_estimator.learning.onnx_file", raising=False)
    assert main(["train", str(tmp_path), "-o", str(tmp_path / "m"), "--onnx", str(tmp_path / "m.onnx")]) == 1
    assert f"'onnx' is missing: {sys.executable} -m pip install 'onnx>=" in capsys.readouterr().err


def test_a_model_that_train_writes_can_be_evaluated(tmp_path, suralp, capsys, monkeypatch):
    pytest.importorskip("jax", reason="JAX is not installed (extra training): nothing can be trained")
    pytest.importorskip("safetensors", reason="safetensors is not installed (extra training)")
    monkeypatch.setenv("COLUMNS", "120")
    rng = np.random.default_rng(0)
    inputs, residual, external = (rng.standard_normal((10_000, size)).astype(np.float32) for size in (48, 18, 18))
    (tmp_path / "data").mkdir()
    recording = SignalRecording(inputs, residual, external, None, np.array([0]), 1e-3)
    recording.save(tmp_path / "data" / "0000.npz", RobotIdentity.from_robot(suralp))
    model = str(tmp_path / "model.safetensors")
    assert main(["train", str(tmp_path / "data"), "-o", model, "--epochs", "1", "--hidden", "3"]) == 0
    printed = capsys.readouterr().out
    assert "virtual joints" in printed and printed.endswith(f"{model}: trained with 10000 samples\n")
    assert [path.name for path in tmp_path.iterdir()].count("model.safetensors") == len(list(tmp_path.glob("model*")))
    assert main(["evaluate", model, str(tmp_path / "data")]) == 0
    printed = capsys.readouterr().out
    assert "mean of the joints" in printed and "mean of the joints l_hip_yaw to" in printed
    assert printed.endswith("10000 samples\n")
    assert main(["evaluate", model, str(tmp_path / "data"), "--robot", "g1"]) == 1
    assert "g1" in capsys.readouterr().err


def test_fused_without_a_model_is_refused(tmp_path, capsys):
    assert main(["replay", str(tmp_path), "-o", str(tmp_path / "out"), "--mob-net-fused"]) == 1
    assert "--mob-net-fused needs a model of MOB-Net: add --mob-net MODEL" in capsys.readouterr().err
