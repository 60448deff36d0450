"""Inputs and targets: exact where nothing is wrong, minus the friction where only friction is, and free of heading."""

import numpy as np
import pytest

from friction_estimator.io.bags.writer import BagWriter
from friction_estimator.io.robot import Robot
from friction_estimator.learning.signals import GAIN, write_inputs
from friction_estimator.learning.training_data import SignalReader, read_bag
from friction_estimator.messages.sensors import SensorMessages
from test.hopper import HOPPER, hopper_config, hopping
from test.learning.conftest import recorded

PERIOD = 4e-3


@pytest.fixture(scope="module")
def hopper():
    """A motion without any error but friction: two seconds."""
    reader = SignalReader(hopper_config(), HOPPER)
    for instant in hopping(1, 500):
        for sample in (instant.joints, instant.imu, instant.wrench):
            reader.add(sample)
    return reader.recording()


def test_the_uncertainty_torque_of_a_joint_is_minus_its_friction_low_passed(hopper):
    friction = np.array([instant.friction for instant in hopping(1, 500)])
    low_passed, decay = np.zeros_like(friction), np.exp(-GAIN * PERIOD)
    for k in range(1, len(friction)):
        low_passed[k] = decay * low_passed[k - 1] + (1.0 - decay) * friction[k - 1]
    target = -low_passed[-len(hopper) :]
    error = hopper.target[:, 6:] - target
    assert np.sqrt(np.mean(error**2)) < 0.03 * np.sqrt(np.mean(target**2))
    assert np.abs(hopper.target[:, :6]).max() < 0.03 * np.abs(hopper.external[:, :6]).max()


def test_the_residual_is_the_torque_of_the_ground_in_all_rows_when_nothing_is_wrong(ideal_walk):
    """Level Ideal of Table 5 and Table 6, virtual joints included."""
    error = ideal_walk.residual - ideal_walk.true_external
    size = np.sqrt(np.mean(ideal_walk.true_external**2, axis=0))
    assert np.all(np.sqrt(np.mean(error[:, 6:] ** 2, axis=0)) < 0.1)
    assert np.sqrt(np.mean(error[:, :6] ** 2)) < 1e-3 * size[:6].max()


def test_each_level_of_uncertainty_adds_to_the_error_of_the_observer(suralp, ideal_walk):
    errors = []
    for recording in (ideal_walk, recorded(suralp, "noise"), recorded(suralp, "all")):
        errors.append(np.sqrt(np.mean((recording.residual - recording.true_external)[:, 6:] ** 2)))
    assert errors[0] < 0.1 < errors[1] < 3.0 < errors[2]


def test_inputs_do_not_depend_on_the_heading():
    def inputs(heading):
        c, s = np.cos(heading), np.sin(heading)
        tilt = np.array([[0.96, 0.0, 0.28], [0.0, 1.0, 0.0], [-0.28, 0.0, 0.96]])
        x = np.empty(18)
        heading_matrix = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
        write_inputs(np.ones(2), np.zeros(2), np.ones(2), heading_matrix @ tilt, np.zeros(3), np.ones(3), x)
        return x

    np.testing.assert_allclose(inputs(2.0), inputs(0.0), atol=1e-12)
    np.testing.assert_allclose(inputs(0.0)[6:12], [0.96, 0.0, -0.28, 0.0, 1.0, 0.0], atol=1e-12)


def test_a_bag_gives_the_signals_of_its_samples(tmp_path, hopper):
    messages = SensorMessages(hopper_config(), ("hip", "knee"))
    with BagWriter(tmp_path / "bag", "mcap", {}, False) as writer:
        for instant in hopping(1, 500):
            for topic, message in messages.build((instant.wrench, instant.imu, instant.joints)):
                writer.write_raw(topic.name, topic.type, instant.joints.stamp_ns, message)
    recording, warnings = read_bag(tmp_path / "bag", Robot("hopper", hopper_config(), HOPPER, None))
    for name in ("inputs", "residual", "external"):
        np.testing.assert_array_equal(getattr(recording, name), getattr(hopper, name))
    assert recording.true_external is None
    assert recording.period == pytest.approx(PERIOD)
    assert [piece.stop for piece in recording.pieces()] == [len(hopper)]


def test_a_silent_foot_makes_a_gap():
    reader = SignalReader(hopper_config(), HOPPER)
    for k, instant in enumerate(hopping(1, 500)):
        for sample in (instant.joints, instant.imu, *([] if 200 <= k < 300 else [instant.wrench])):
            reader.add(sample)
    recording = reader.recording()
    assert len(recording.starts) == 2
    assert 350 < len(recording) < 400
