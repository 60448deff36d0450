"""The ONNX file computes what JAX computed, sample by sample and as a whole recording."""

import json

import numpy as np
import pytest

from friction_estimator.learning.network import Model, RobotIdentity
from test.learning.golden import FILE, inputs, networks

onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
write_onnx = pytest.importorskip("friction_estimator.learning.onnx_file", reason="onnx is not installed").write_onnx


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    path = tmp_path_factory.mktemp("onnx") / "model.onnx"
    identity = RobotIdentity(1, "two limbs", "", ("a", "b"), (), "", 100.0)
    write_onnx(Model(identity, 1e-3, networks(), np.zeros((2, 7)), np.zeros((2, 5)), {}), path)
    return onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])


def run(session, x, hidden):
    return session.run(None, {"inputs": np.atleast_2d(x).astype(np.float32), "hidden": hidden})


@pytest.mark.parametrize("samples", [1, len(inputs())])
def test_the_onnx_network_computes_what_jax_computed(session, samples):
    hidden, parts = np.zeros(12, dtype=np.float32), []
    for x in inputs().reshape(-1, samples, 7):
        torque, sigma, hidden = run(session, x, hidden)
        parts.append((torque, sigma))
    torque, sigma = (np.concatenate(part) for part in zip(*parts, strict=True))
    with np.load(FILE) as golden:
        np.testing.assert_allclose(torque, golden["torque"], rtol=0.0, atol=1e-4)  # of some 10, single precision
        np.testing.assert_allclose(sigma, golden["sigma"], rtol=0.0, atol=1e-4)


def test_the_file_names_robot_joints_and_period(session):
    about = json.loads(session.get_modelmeta().custom_metadata_map["friction_estimator"])
    assert about == {"robot": "two limbs", "joint_names": ["a", "b"], "period": 1e-3}
