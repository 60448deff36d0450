"""MOB-Net's external torque on the topic: what the equations say, and the observer's where MOB-Net has not learned."""

import dataclasses
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from friction_estimator.estimation.estimator import Estimator
from friction_estimator.io.robot import Robot
from friction_estimator.learning.external_torque import MobNetEstimator
from friction_estimator.learning.network import Model, RobotIdentity, limb_modules
from friction_estimator.learning.training_data import SignalReader, evaluate
from friction_estimator.robot.model import RobotModel
from test.hopper import HOPPER, PERIOD_NS, hopper_config, hopping
from test.learning.golden import random_network

ROBOT = Robot("hopper", hopper_config(), HOPPER, None)
COUNT = 300


def fed(estimator):
    estimates = []
    for instant in hopping(1, COUNT):
        for sample in (instant.joints, instant.imu, instant.wrench):
            estimates += estimator.add(sample)
    return estimates + estimator.flush()


@pytest.fixture(scope="module")
def recording():
    reader = SignalReader(ROBOT.config, HOPPER)
    fed(reader)
    return reader.recording()


@pytest.fixture(scope="module")
def model(recording):
    """Random weights: what they compute is known from test_network."""
    networks = [random_network(5, module) for module in limb_modules(RobotModel(ROBOT.config, HOPPER))]
    identity = RobotIdentity.from_robot(ROBOT)
    limits = np.stack((recording.inputs.min(axis=0), recording.inputs.max(axis=0))).astype(float)
    return Model(identity, 1e-9 * PERIOD_NS, tuple(networks), limits, np.zeros((2, 5)), {})


def test_it_is_the_residual_without_feet_and_uncertainty_torque(model, recording):
    estimates = fed(MobNetEstimator(ROBOT.config, HOPPER, model))
    assert len(estimates) == COUNT
    with_network = estimates[-len(recording) :]
    torque = np.array([one.external_torque for one in with_network])
    sigma = np.array([one.external_torque_sigma for one in with_network])
    unknown = SignalReader(ROBOT.config, HOPPER)
    inputs = []
    unknown._add = lambda known, observed, dt: inputs.append(known[:18])
    fed(unknown)
    network = model.estimator()
    expected = [network.step(x) for x in inputs][-len(recording) :]
    uncertainty, own_sigma = np.array(expected).swapaxes(0, 1)
    target = recording.target.astype(float)
    np.testing.assert_allclose(torque, (target - uncertainty)[:, 6:], atol=1e-4)
    np.testing.assert_allclose(sigma, own_sigma[:, 6:], rtol=1e-6)


def test_outside_of_the_training_data_it_is_that_of_the_observer_and_the_input_is_named(model):
    narrow = model.input_range.copy()
    narrow[:, 5] = 0.0, 1.0  # torque of the knee
    estimator = MobNetEstimator(ROBOT.config, HOPPER, dataclasses.replace(model, input_range=narrow))
    estimates, plain = fed(estimator), fed(Estimator(ROBOT.config, HOPPER))
    torque, of_observer = (np.array([one.external_torque for one in each]) for each in (estimates, plain))
    knee = np.array([one.effort[1] for one in estimates])
    outside = (knee < -0.25) | (knee > 1.25)
    assert 0 < outside.sum() < COUNT
    np.testing.assert_array_equal(torque[outside], of_observer[outside])
    assert not np.allclose(torque[~outside][-10:], of_observer[~outside][-10:], equal_nan=True)
    assert any("'torque of knee' = " in text for text in estimator.warnings())


def test_evaluate_has_the_observer_and_both_together_where_the_friction_stage_has_run(model, recording):
    reader = SignalReader(ROBOT.config, HOPPER, with_observer=True)
    estimates = fed(reader)
    observed = reader.recording().observed
    plain = fed(Estimator(ROBOT.config, HOPPER))[-len(observed) :]
    expected = [np.concatenate((one.external_torque, one.external_torque_sigma)) for one in plain]
    np.testing.assert_allclose(observed, expected, rtol=1e-5)
    assert len(estimates) == COUNT and recording.observed is None
    errors = evaluate(model, [reader.recording()])
    of_joints = {name: values[6:] for name, values in errors.rms.items()}
    np.testing.assert_allclose(of_joints["observer"], np.sqrt(np.nanmean(np.square(expected), axis=0))[:2], rtol=1e-5)
    better, worse = (each(of_joints["observer"], of_joints["MOB-Net"]) for each in (np.minimum, np.maximum))
    assert ((0.5 * better < of_joints["fused"]) & (of_joints["fused"] < worse)).all()
    assert list(errors.coverage) == ["MOB-Net", "observer", "fused"]
    assert list(evaluate(model, [recording]).rms) == ["MOB", "MOB-fric", "MOB-Net"]


def test_where_errors_stay_beyond_sigma_it_is_that_of_the_observer_and_fused_the_observers_too(model):
    certain = [random_network(5, module) for module in limb_modules(RobotModel(ROBOT.config, HOPPER))]
    for network in certain:
        network.tensors["output_std"][:] *= 1e-3
    certain = dataclasses.replace(model, networks=tuple(certain))
    plain = [one.external_torque for one in fed(Estimator(ROBOT.config, HOPPER))][-10:]
    estimator = MobNetEstimator(ROBOT.config, HOPPER, certain)
    np.testing.assert_array_equal([one.external_torque for one in fed(estimator)][-10:], plain)
    assert any("stays beyond the sigma of MOB-Net" in text for text in estimator.warnings())
    fused = [one.external_torque for one in fed(MobNetEstimator(ROBOT.config, HOPPER, certain, fused=True))][-10:]
    np.testing.assert_allclose(fused, plain, atol=1e-9)


def test_the_fused_external_torque_lies_between_those_of_mob_net_and_the_observer(model):
    fused, network, observer = (
        np.array([one.external_torque for one in fed(estimator)][-50:])
        for estimator in (
            MobNetEstimator(ROBOT.config, HOPPER, model, fused=True),
            MobNetEstimator(ROBOT.config, HOPPER, model),
            Estimator(ROBOT.config, HOPPER),
        )
    )
    low, high = np.minimum(network, observer), np.maximum(network, observer)
    assert ((low - 1e-9 <= fused) & (fused <= high + 1e-9)).all()
    assert np.abs(fused - observer).max() > 1e-3 and np.abs(fused - network).max() > 1e-3


def test_at_another_rate_it_is_that_of_the_observer(model):
    estimator = MobNetEstimator(ROBOT.config, HOPPER, dataclasses.replace(model, period=1e-3))
    plain = Estimator(ROBOT.config, HOPPER)
    torque, of_observer = (np.array([one.external_torque for one in fed(each)])[200:] for each in (estimator, plain))
    np.testing.assert_array_equal(torque, of_observer)
    assert any("MOB-Net was trained with 0.001 s" in text for text in estimator.warnings())


def test_the_node_uses_a_model_and_ends_with_the_reason_where_it_cannot(model, tmp_path):
    pytest.importorskip("rclpy", reason="ROS is not installed")
    urdf, parameters = tmp_path / "hopper.urdf", tmp_path / "hopper.yaml"
    urdf.write_text(HOPPER)
    parameters.write_text(
        f"/**:\n  ros__parameters:\n    robot.urdf: {urdf}\n    feet.names: [foot]\n    feet.foot.frame: l_sole\n"
    )
    command = [sys.executable, "-m", "friction_estimator.ros.executables", "estimator_node", "--ros-args"]
    command += ["--params-file", str(parameters), "-p", f"mob_net_model:={tmp_path / 'model.safetensors'}"]
    environment = {**os.environ, "ROS_DOMAIN_ID": "77", "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST"}
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert ended.returncode == 1
    assert f"there is no model at {tmp_path / 'model.safetensors'}" in ended.stdout + ended.stderr
    pytest.importorskip("safetensors", reason="safetensors is not installed: models cannot be written or read")
    model.save(tmp_path / "model.safetensors")
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as node:
        assert node.stdout is not None
        assert any("estimating 2 joints with the kalman observer" in line for line in node.stdout)
        node.send_signal(signal.SIGINT)
        assert node.wait(60) == 0
