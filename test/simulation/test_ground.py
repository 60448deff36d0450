"""Inclined and uneven ground: the feet stand on it, and the robot stays up."""

import numpy as np
import pinocchio as pin
import pytest

from friction_estimator.errors import SimulationError
from friction_estimator.simulation import Ground, make_scenario
from friction_estimator.simulation.biped import Biped
from friction_estimator.simulation.footsteps import LEFT, Gait, ground_rotation, places, plan_footsteps

PLACES = np.random.default_rng(0).uniform(-2.0, 2.0, (200, 2))


def test_a_sole_on_the_ground_has_its_normal_and_turns_no_more_than_needed():
    gradient = np.random.default_rng(1).uniform(-0.3, 0.3, (20, 2))
    for (along_x, along_y), R in zip(gradient, ground_rotation(gradient), strict=True):
        np.testing.assert_allclose(R.T @ R, np.eye(3), atol=1e-14)
        normal = np.array([-along_x, -along_y, 1.0])
        np.testing.assert_allclose(R[:, 2], normal / np.linalg.norm(normal), atol=1e-14)
        assert pin.log3(R)[2] == pytest.approx(0.0, abs=1e-14)


def test_patches_deviate_from_the_incline_within_their_limits_and_the_map_shows_one_part():
    ground = Ground(slope=0.1, height=0.01, tilt=0.05, unseen_height=0.003, unseen_tilt=0.02, seed=4)
    mapped, true = ground.mapped(PLACES), ground.true(PLACES)
    bare = [ground.incline(x, y) for x, y in PLACES]

    def spread(ones, others):
        height = [one.height - other.height for one, other in zip(ones, others, strict=True)]
        tilt = [np.subtract(one.gradient, other.gradient) for one, other in zip(ones, others, strict=True)]
        return np.abs(height).max(), np.abs(tilt).max()

    assert spread(mapped, bare) == pytest.approx((0.01, 0.05), rel=0.05)
    assert spread(true, mapped) == pytest.approx((0.003, 0.02), rel=0.05)


def test_a_longer_walk_finds_the_same_ground_and_another_seed_another():
    ground = Ground(height=0.01, unseen_tilt=0.02, seed=4)
    assert ground.true(PLACES[:10]) == ground.true(PLACES)[:10]
    assert Ground(height=0.01, seed=5).true(PLACES) != ground.true(PLACES)


def test_impossible_ground_is_refused():
    for wrong in ({"slope": 1.2}, {"height": -0.01}, {"unseen_tilt": float("nan")}):
        with pytest.raises(SimulationError, match="inclined by 0.5 rad at most"):
            Ground(**wrong)


def test_the_walk_climbs_the_slope_and_the_ground_pushes_the_standing_foot_backward(recorded):
    samples = recorded("slope", 6.0)
    slope = make_scenario("slope").ground.slope
    climbed = samples[-1].truth.position_base_in_world - samples[0].truth.position_base_in_world
    assert climbed[0] > 0.3
    assert climbed[2] / climbed[0] == pytest.approx(np.tan(slope), rel=0.1)
    standing = np.mean([sample.truth.wrenches[0] for sample in samples[3500:4100]], axis=0)
    assert standing[0] / standing[2] == pytest.approx(np.tan(slope), rel=0.2)
    assert max(np.arccos(sample.truth.rotation_base_to_world[2, 2]) for sample in samples) < 0.01


def test_feet_stand_on_the_patches_of_uneven_ground(recorded, robot):
    """The ankle is where the true patch is, within what a foot on its edge makes of it."""
    biped = Biped(robot.config, robot.urdf_xml)
    model, data = biped.model, biped.model.createData()
    samples = recorded("uneven", 8.0)
    steps = plan_footsteps(Gait(), biped.dimensions(0.927).half_width, 8.0)
    planes = make_scenario("uneven").ground.true(places(steps))
    seen = 0
    for step, plane in list(zip(steps, planes, strict=True))[:-1]:
        sample = samples[round((step.start + 1.8) * 1000)] if step.start + 1.8 < 8.0 else None
        if sample is None:
            continue
        pose = pin.Quaternion(sample.truth.rotation_base_to_world).coeffs()
        q = np.concatenate([sample.truth.position_base_in_world, pose, sample.joints.position])
        pin.framesForwardKinematics(model, data, q)
        side = 0 if step.foot == LEFT else 1
        sole = data.oMf[biped.legs[side].frame_id]
        height = plane.height + np.dot(plane.gradient, sole.translation[:2] - [plane.x, plane.y])
        assert sole.translation[2] == pytest.approx(height, abs=2e-3)
        normal = np.array([-plane.gradient[0], -plane.gradient[1], 1.0])
        assert sole.rotation[:, 2] @ normal / np.linalg.norm(normal) > np.cos(0.01)
        seen += 1
    assert seen >= 4
