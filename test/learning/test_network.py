"""The compiled networks compute what JAX computes, and a model of something else is refused."""

import dataclasses

import numpy as np
import pytest

from friction_estimator.errors import LearningError
from friction_estimator.learning.network import MobNet, Model, RobotIdentity, limb_modules, load_model
from friction_estimator.robot.model import RobotModel
from test.learning.golden import FILE, ROWS, computed_by_jax, inputs, networks, random_network


def test_the_kernel_computes_what_jax_computed():
    network = MobNet(networks(), ROWS)
    torque, sigma = np.array([network.step(x) for x in inputs()]).swapaxes(0, 1)
    with np.load(FILE) as golden:
        np.testing.assert_allclose(torque, golden["torque"], rtol=0.0, atol=1e-11)
        np.testing.assert_allclose(sigma, golden["sigma"], rtol=0.0, atol=1e-11)


def test_the_golden_file_is_what_this_jax_computes():
    pytest.importorskip("jax", reason="JAX is not installed: the golden file stands for it")
    with np.load(FILE) as golden:
        np.testing.assert_allclose(computed_by_jax(), (golden["torque"], golden["sigma"]), rtol=0.0, atol=1e-11)


def test_a_reset_begins_anew_and_extreme_inputs_stay_finite():
    network = MobNet(networks(), ROWS)
    first = [network.step(x)[0] for x in inputs()]
    assert np.isfinite(network.step(np.full(7, 1e12))).all()
    assert np.isfinite(network.step(np.full(7, -1e12))).all()
    network.reset()
    np.testing.assert_array_equal([network.step(x)[0] for x in inputs()], first)


@pytest.fixture
def model(suralp):
    """A model of the biped that has learned nothing."""
    modules = limb_modules(RobotModel(suralp.config, suralp.urdf_xml))
    made = [random_network(number, module) for number, module in enumerate(modules)]
    return Model(
        RobotIdentity.from_robot(suralp), 1e-3, tuple(made), np.zeros((2, 48)), np.zeros((12, 5)), {"samples": 0}
    )


def test_a_saved_model_gives_the_same_torques(model, suralp, tmp_path):
    pytest.importorskip("safetensors", reason="safetensors is not installed: models cannot be written or read")
    model.save(tmp_path / "model.safetensors")
    read = load_model(tmp_path / "model.safetensors", suralp)
    assert (read.identity, read.period, read.training) == (model.identity, model.period, model.training)
    x = np.random.default_rng(1).standard_normal(48)
    np.testing.assert_allclose(read.estimator().step(x), model.estimator().step(x), rtol=1e-5)


def test_models_of_other_robots_and_versions_and_damaged_files_are_refused_with_the_reason(model, suralp, tmp_path):
    pytest.importorskip("safetensors", reason="safetensors is not installed: models cannot be written or read")
    path = tmp_path / "model.safetensors"
    model.save(path)
    other = dataclasses.replace(suralp, urdf_xml=suralp.urdf_xml + "\n")
    with pytest.raises(LearningError, match=r"the model .* is not for this robot \('suralp'\): its urdf_sha256 is"):
        load_model(path, other)
    dataclasses.replace(model, identity=dataclasses.replace(model.identity, version=0)).save(path)
    with pytest.raises(LearningError, match="has version 0, this program reads version 1"):
        load_model(path, suralp)
    broken = dataclasses.replace(model.networks[0], tensors=dict(model.networks[0].tensors, b_output=np.zeros(3)))
    dataclasses.replace(model, networks=(broken, *model.networks[1:])).save(path)
    with pytest.raises(LearningError, match="b_output of l_hip_yaw to l_ankle_roll is not"):
        load_model(path, suralp)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(LearningError, match="is not a MOB-Net model"):
        load_model(path, suralp)
