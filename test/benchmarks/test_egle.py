"""What the study of Egle 2021, section 6.2.2 and chapter 7, is made of."""

import numpy as np
import pinocchio as pin
import pytest

from benchmarks.egle.fits import fit_legs
from benchmarks.egle.knee import KNEE, KneeCurve, scaled
from benchmarks.egle.walks import (
    TARGETS,
    central,
    centred,
    friction_from,
    sharpened,
    substeps,
    swings,
    torque_weight,
    walks,
)
from benchmarks.shared.wrong_bodies import scaled_urdf


@pytest.fixture(scope="module")
def runs(robot, model):
    return walks(robot, model, 2.6)


def test_injected_friction_is_that_of_the_tables(runs):
    straight = runs[0]
    velocity = np.array([sample.joints.velocity for sample in straight.samples])
    f_v, f_c, s, v_s, offset, a = np.tile(TARGETS, (2, 1)).T
    expected = f_v * velocity + f_c * np.tanh(a * velocity) * (1 + s * np.exp(-((velocity / v_s) ** 2))) + offset
    np.testing.assert_allclose(straight.friction, expected, atol=1e-9)


def test_walking_sideways_moves_hip_and_ankle_rolls_out_of_the_stribeck_region(runs):
    top = [
        np.abs(np.where(swings(run), [sample.joints.velocity for sample in run.samples], 0.0)).max(axis=0)
        for run in runs
    ]
    rolls = [1, 5, 7, 11]
    assert (top[0][rolls] < 0.4).all()
    assert (np.maximum(top[1], top[2])[rolls] > 0.5).all()


def test_torque_belongs_to_the_milliseconds_on_both_sides_of_the_acceleration(robot, model, runs):
    run, error = runs[0], []
    for before in (0.0, torque_weight(substeps(robot, run))):
        friction = friction_from(robot, centred(run, before), model, central(run))
        error.append(np.sqrt(np.nanmean((friction - run.friction)[:, KNEE] ** 2)))
    assert error[1] < 0.005
    assert error[0] > 4.0 * error[1]


def test_a_second_difference_weighs_the_accelerations_of_the_steps_as_stated():
    """Semi-implicit Euler's method, step by step, with a torque for each period and friction for each step."""
    steps = 4
    torque, friction = np.array([1.0, 3.0]), np.linspace(-1.0, 1.0, 2 * steps) ** 2
    velocity, position = 0.7, [0.2]
    for k in range(2 * steps):
        velocity += (torque[k // steps] - friction[k]) / steps
        position.append(position[-1] + velocity / steps)
    difference = position[0] - 2.0 * position[steps] + position[-1]
    triangle = np.concatenate((np.arange(steps), np.arange(steps, 0, -1))) / steps**2
    before = torque_weight(steps)
    assert difference == pytest.approx(before * torque[0] + (1.0 - before) * torque[1] - triangle @ friction)


def test_sharpening_takes_the_average_over_the_triangle_out_of_a_parabola():
    steps, periods = 4, 50
    fine = np.linspace(-1.0, 1.0, periods * steps) ** 2
    triangle = np.concatenate((np.arange(1, steps + 1), np.arange(steps - 1, 0, -1))) / steps**2
    averaged = np.convolve(fine, triangle, "same")[::steps, None]
    np.testing.assert_allclose(sharpened(averaged, steps)[2:-2, 0], fine[::steps][2:-2], atol=1e-12)


def test_a_fit_to_the_true_friction_has_no_error_in_the_parameters_it_identifies(runs, model):
    truth = [np.where(swings(run), run.friction, np.nan) for run in runs]
    fit = fit_legs(runs, truth, model.joint_names)
    assert fit.error[fit.identifiable].max() < 0.1
    assert fit.identifiable.mean() > 0.8
    assert fit.result.friction.joint_names == model.joint_names


def test_scaled_models_have_scaled_masses_and_inertias_and_the_same_joints(robot):
    plain, heavy = (
        pin.buildModelFromXML(xml, pin.JointModelFreeFlyer())
        for xml in (robot.urdf_xml, scaled_urdf(robot.urdf_xml, 2.0, 3.0))
    )
    for own, other in zip(plain.inertias, heavy.inertias, strict=True):
        assert other.mass == pytest.approx(2.0 * own.mass)
    shank = plain.getJointId("r_knee")
    assert plain.inertias[shank].mass > 0.0
    np.testing.assert_array_equal(plain.jointPlacements[shank].translation, heavy.jointPlacements[shank].translation)


def test_a_heavier_model_shifts_the_curve_of_the_knee_and_a_lighter_one_the_other_way(robot, runs):
    light, exact, heavy = (scaled(robot, runs[0], scale, scale) for scale in (0.9, 1.0, 1.1))
    assert abs(exact.shift) < 0.01
    assert light.shift * heavy.shift < 0.0 and abs(heavy.shift) > 0.05


def test_branches_that_do_not_lie_on_one_another_are_separate():
    time = np.linspace(0.0, 20.0, 4000)
    velocity, acceleration = np.sin(time), np.cos(time)
    target = np.tanh(40.0 * velocity)
    one = KneeCurve(velocity, target, target, acceleration)
    two = KneeCurve(velocity, target + 0.1 * np.sign(velocity * acceleration), target, acceleration)
    assert one.separation < 1e-12
    assert two.separation == pytest.approx(0.2, rel=0.2)
    assert two.error() == pytest.approx(0.1, rel=0.01)
