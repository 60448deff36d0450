"""Training: learns what can be learned with honest sigmas, and continues where it stopped."""

import dataclasses

import numpy as np
import pytest
from scipy.signal import lfilter

from friction_estimator.errors import LearningError
from friction_estimator.io.robot import Robot
from friction_estimator.learning.training_data import SignalRecording, evaluate
from test.hopper import HOPPER, hopper_config

pytest.importorskip("safetensors", reason="safetensors is not installed (extra training): nothing can be trained")
optax = pytest.importorskip("optax", reason="optax is not installed (extra training): nothing can be trained")
training = pytest.importorskip("friction_estimator.learning.training", reason="JAX is not installed (extra training)")

ROBOT = Robot("hopper", hopper_config(), HOPPER, None)
SETTINGS = training.TrainingSettings(leg_hidden=12, other_hidden=8, epochs=8, batch=8)
NOISE = np.array([1.0, 2.0])


def recording(seed: int, samples: int = 20_000) -> SignalRecording:
    """Joints with load-dependent friction that a lag makes a function of the past, and noise of known size."""
    rng = np.random.default_rng(seed)
    inputs = lfilter([0.3], [1.0, -0.95], rng.standard_normal((samples, 18)), axis=0).astype(np.float32)
    friction = 3.0 * np.tanh(2.0 * inputs[:, 2:4]) * (1.0 + np.abs(inputs[:, 4:6]))
    lagging = lfilter([0.1], [1.0, -0.9], friction, axis=0)
    external = 20.0 * rng.standard_normal((samples, 8)).astype(np.float32)
    uncertainty = np.concatenate(
        (rng.standard_normal((samples, 6)), lagging + NOISE * rng.standard_normal((samples, 2))), 1
    )
    residual = (external + uncertainty).astype(np.float32)
    return SignalRecording(inputs, residual, external, None, np.array([0]), 1e-3)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    epochs = []
    path = tmp_path_factory.mktemp("training") / "checkpoint"
    return training.train([recording(0)], ROBOT, SETTINGS, path, epochs.append), epochs


def test_a_lag_and_a_load_are_learned_down_to_the_noise_with_the_sigma_of_the_noise(trained):
    model, _ = trained
    unseen = recording(1, 5000)
    errors = evaluate(model, [unseen])
    assert np.all(errors.rms["MOB-Net"][:6] < 1.03)  # nothing but noise of one
    left, left_by_friction_model = (errors.rms[name][6:] ** 2 - NOISE**2 for name in ("MOB-Net", "MOB-fric"))
    assert np.all(left < 0.4 * left_by_friction_model)
    assert np.all((errors.coverage["MOB-Net"] > 0.9) & (errors.coverage["MOB-Net"] < 0.98))


def test_the_hidden_state_runs_on_from_segment_to_segment():
    """Two segments one after the other change the weights as one of twice the length does."""
    rng, horizon, streams = np.random.default_rng(0), 5, 3
    optimizer, weights = optax.adam(0.01), training.initial_parameters(4, 6, 2, rng)
    x, y = (rng.standard_normal((streams, 4 * horizon, width)).astype(np.float32) for width in (4, 2))
    start = weights, optimizer.init(weights), np.zeros((streams, 6), np.float32)
    whole, *_ = training.train_segments(optimizer, horizon, *start, x, y)
    state = start
    for part in (slice(0, 2 * horizon), slice(2 * horizon, None)):
        *state, _ = training.train_segments(optimizer, horizon, *state, x[:, part], y[:, part])
    for name, values in whole.items():
        np.testing.assert_allclose(state[0][name], values, atol=1e-6)


def test_progress_counts_to_the_end_and_losses_fall(trained):
    _, epochs = trained
    assert [epoch.done for epoch in epochs][:8] == list(range(1, 9))
    assert {epoch.total for epoch in epochs} == {2 * SETTINGS.epochs}
    assert epochs[7].training_loss < epochs[0].training_loss


def test_an_interrupted_training_ends_with_the_same_model(trained, tmp_path):
    def stop(epoch):
        if epoch.done == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        training.train([recording(0)], ROBOT, SETTINGS, tmp_path / "checkpoint", stop)
    epochs = []
    model = training.train([recording(0)], ROBOT, SETTINGS, tmp_path / "checkpoint", epochs.append)
    assert epochs[0].done == 6
    for one, other in zip(model.networks, trained[0].networks, strict=True):
        for name, values in one.tensors.items():
            np.testing.assert_array_equal(values, other.tensors[name])
    with pytest.raises(LearningError, match="with other data or settings: delete it"):
        training.train([recording(0)], ROBOT, dataclasses.replace(SETTINGS, seed=1), tmp_path / "checkpoint")


def test_too_few_samples_and_mixed_rates_are_refused(tmp_path):
    with pytest.raises(LearningError, match="stretches of 5000 samples"):
        training.train([recording(0, 3000)], ROBOT, SETTINGS, tmp_path / "checkpoint")
    slow = dataclasses.replace(recording(0, 3000), period=5e-3)
    with pytest.raises(LearningError, match="periods from 0.001 to 0.005 s"):
        training.train([recording(0, 3000), slow], ROBOT, SETTINGS, tmp_path / "checkpoint")
