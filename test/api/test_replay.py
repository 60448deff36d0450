"""`simulate` and `replay` from Python: arrays out, the same numbers from memory and from a bag."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import friction_estimator as fe
from friction_estimator.api.replay import ReplayResult
from friction_estimator.api.simulate import Simulation
from friction_estimator.io.bags.arrays import read_recording

pytest.importorskip("mujoco", reason="MuJoCo is not installed")
pytest.importorskip("rosbags", reason="rosbags is not installed")


@pytest.fixture(scope="module")
def walk() -> Simulation:
    return fe.simulate("suralp", duration=2.0)


@pytest.fixture(scope="module")
def replayed(walk: Simulation) -> ReplayResult:
    return fe.replay(walk)


@pytest.fixture(scope="module")
def bag(walk: Simulation, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("walk") / "walk"
    walk.save(path)
    return path


def test_a_simulation_gives_the_sensors_and_the_true_friction_as_arrays(walk: Simulation) -> None:
    m, n = 2000, len(walk.joint_names)
    assert walk.time[0] == 0.0 and walk.time[-1] == pytest.approx(1.999)
    for signal in (walk.position, walk.velocity, walk.effort, walk.friction):
        assert signal.shape == (m, n) and np.isfinite(signal).all()


def test_a_simulation_and_its_bag_give_the_same_estimates(walk: Simulation, replayed: ReplayResult, bag: Path) -> None:
    in_memory, recorded = replayed, fe.replay(bag)
    assert recorded.joint_names == in_memory.joint_names == walk.joint_names
    for name in ("stamp_ns", "friction", "sigma", "coulomb", "position_base_in_world", "rotation_base_to_world"):
        np.testing.assert_array_equal(getattr(recorded, name), getattr(in_memory, name), name)
    np.testing.assert_array_equal(recorded.contact_phase, in_memory.contact_phase)
    np.testing.assert_allclose(recorded.truth, in_memory.truth)
    assert recorded.robot.name == "suralp" and recorded.warnings == in_memory.warnings
    assert (in_memory.errors(after=1.0).relative_rmse < 1.0).all()


def test_another_observer_is_a_setting_of_the_robot_and_the_bag_can_be_written(bag: Path, tmp_path: Path) -> None:
    momentum = fe.load_robot("suralp", {"observer": "momentum"})
    result = fe.replay(bag, momentum, output=tmp_path / "out")
    again = fe.replay(bag, momentum)
    np.testing.assert_array_equal(result.friction, again.friction)
    written = read_recording(tmp_path / "out")
    np.testing.assert_array_equal(written.friction, result.friction)


def test_a_run_can_start_from_the_parameters_of_another(
    walk: Simulation, replayed: ReplayResult, tmp_path: Path
) -> None:
    first = replayed
    first.save_parameters(tmp_path / "params.yaml")
    second = fe.replay(walk, parameters=tmp_path / "params.yaml")
    assert (second.coulomb_sigma[0] < first.coulomb_sigma[0]).all()
    np.testing.assert_array_equal(second.friction, fe.replay(walk, parameters=first.identified).friction)


def test_smoothing_uses_later_data(walk: Simulation, replayed: ReplayResult) -> None:
    live, smoothed = replayed, fe.replay(walk, smooth=1.0)
    np.testing.assert_array_equal(smoothed.stamp_ns, live.stamp_ns)
    assert smoothed.errors(0.5).rmse.mean() < live.errors(0.5).rmse.mean()


def test_what_cannot_be_is_one_clear_error(walk: Simulation, bag: Path, tmp_path: Path) -> None:
    with pytest.raises(fe.FrictionEstimatorError, match="no robot 'nobody'.*suralp"):
        fe.simulate("nobody")
    with pytest.raises(fe.FrictionEstimatorError, match="save it as a bag first"):
        fe.replay(walk, output=tmp_path / "out")
    with pytest.raises(fe.FrictionEstimatorError, match="exists already"):
        walk.save(bag)
