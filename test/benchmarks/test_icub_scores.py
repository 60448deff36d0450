"""Claims about the scores of the iCub benchmark, on made-up recordings."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from benchmarks.icub.__main__ import main
from benchmarks.icub.recording import JOINTS, Recording
from benchmarks.icub.tracks import Track, contact_agreement, differentiated, errors_of, reference_contact
from benchmarks.icub.velocities import noise_of_each

SAMPLES, PERIOD = 1000, 0.01


@pytest.fixture
def recording():
    time = PERIOD * np.arange(SAMPLES)
    position = np.stack((0.1 * np.maximum(time - 2.0, 0.0), 0.02 * np.sin(time), 0.5 + 0.0 * time), axis=1)
    yaw = 2.0 + 0.05 * np.sin(time)
    return Recording(
        name="made up",
        time=time,
        position=np.zeros((SAMPLES, len(JOINTS))),
        velocity=np.zeros((SAMPLES, len(JOINTS))),
        angular_velocity=np.zeros((SAMPLES, 3)),
        specific_force=np.zeros((SAMPLES, 3)),
        force=np.full((SAMPLES, 2), 150.0),
        true_position=position,
        true_rotation=Rotation.from_euler("ZYX", np.stack((yaw, 0.1 + 0.0 * yaw, -0.05 + 0.0 * yaw), axis=1)),
    )


def elsewhere(recording, drift=0.0, stretch=1.0):
    """The true motion in a world turned by 2.5 rad and moved, with a yaw drift [rad/s] and a stretched path."""
    turn = Rotation.from_euler("z", 2.5)
    rotation = (
        Rotation.from_euler("z", drift * np.maximum(recording.time - 1.0, 0.0)[:, None])
        * turn
        * recording.true_rotation
    )
    position = turn.apply(stretch * recording.true_position) + [3.0, -2.0, 1.0]
    return Track(rotation, position, np.gradient(position, PERIOD, axis=0))


def test_a_perfect_track_in_another_world_has_no_error(recording):
    errors = errors_of(elsewhere(recording), recording)
    np.testing.assert_allclose(errors.angle, 0.0, atol=1e-9)
    np.testing.assert_allclose(errors.position, 0.0, atol=1e-9)
    assert np.abs(errors.velocity[20:-20]).max() < 0.05


def test_drifts_are_those_put_in(recording):
    errors = errors_of(elsewhere(recording, drift=0.01, stretch=1.05), recording)
    assert errors.yaw_drift == pytest.approx(60.0 * np.degrees(0.01 * 8.9) / 10.0, rel=0.02)
    assert errors.end_position[0] == pytest.approx(0.05 * 0.79, rel=0.02)


def test_contact_of_the_reference_has_no_chatter_and_no_delay(recording):
    force = recording.force
    force[300:500, 0] = 1.0
    force[400:402, 0] = 90.0
    expected = np.ones((SAMPLES, 2), dtype=bool)
    expected[300:500, 0] = False
    reference = reference_contact(recording, 320.0)
    np.testing.assert_array_equal(reference, expected)
    late = np.roll(expected, 5, axis=0)
    assert contact_agreement(late, reference) == (pytest.approx(0.99), 1.0)


def test_a_folder_without_recordings_is_refused_with_the_names_of_the_missing_files(tmp_path, capsys):
    (tmp_path / "model.urdf").write_text("<robot/>")
    with pytest.raises(SystemExit):
        main([str(tmp_path)])
    assert "must be a folder that holds *.mat" in capsys.readouterr().err


def test_noise_of_each_of_three_measurements_is_found_with_any_signal():
    rng = np.random.default_rng(0)
    signal, stds = 3.0 * rng.normal(size=(20_000, 1)), (0.1, 0.02, 0.3)
    noises = noise_of_each(tuple(signal + std * rng.normal(size=signal.shape) for std in stds), PERIOD)
    per_band = np.sqrt([2.0, 3.0, 5.0, 8.0]) / np.sqrt(0.5 / PERIOD)  # white noise, by width
    np.testing.assert_allclose(noises[[0, 2], :, 0], np.outer((0.1, 0.3), per_band), rtol=0.1)
    assert (noises[1, :, 0] < 0.5 * noises[0, :, 0]).all()


def test_differentiated_positions_are_not_late():
    time = PERIOD * np.arange(SAMPLES)
    velocity = differentiated(np.sin(5.0 * time)[:, None], PERIOD)[20:-20, 0]
    np.testing.assert_allclose(velocity, 5.0 * np.cos(5.0 * time)[20:-20], atol=0.05)
