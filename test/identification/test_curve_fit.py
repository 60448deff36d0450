"""Claims about the fit of friction curves: exact, unbiased by outliers, honest about its errors, for every law."""

import numpy as np
import pytest

from friction_estimator.errors import ConfigError, InputError
from friction_estimator.identification.curves.fit import CurveOptions, fit_curve, parameter_identifiability, refit
from friction_estimator.identification.curves.problem import CurveSamples, CurveShape
from friction_estimator.laws import law_names, make_law
from friction_estimator.laws.law import torque_gradient
from test.identification.curves import KNEE, curve
from test.laws.test_friction_laws import PARAMETERS


@pytest.mark.parametrize("name", law_names())
def test_every_law_of_the_registry_finds_itself_without_noise(name):
    truth = PARAMETERS[name][0]
    samples = curve(name, truth, 2.0)
    fit = fit_curve(make_law(name), samples)
    torque, _ = fit.friction.predict(samples.velocity, samples.load)
    assert np.abs(torque - samples.friction).max() < 1e-4 * samples.torque_rms
    if name != "makkar":  # two of its tangents are equal here, and then cannot be separated to first order
        np.testing.assert_allclose(fit.values, truth, rtol=1e-4, atol=1e-5)


def test_the_law_of_the_thesis_is_exact_on_noiseless_data_with_the_printed_loss():
    fit = fit_curve(make_law("tanh_stribeck"), curve("tanh_stribeck", KNEE, 2.0), CurveOptions(robust=False))
    np.testing.assert_allclose(fit.values, KNEE, rtol=1e-8)


@pytest.mark.parametrize("name", ["makkar", "stribeck_load", "tanh_stribeck", "six_slope_load"])
def test_rows_about_a_solution_are_those_of_finite_differences(name):
    truth = PARAMETERS[name][1]
    samples = curve(name, PARAMETERS[name][0], 1.0)
    form = CurveShape(make_law(name), samples)
    problem, here = form.linearised(truth), np.where(form.shape, 0.0, truth)
    np.testing.assert_allclose(form.moved(truth, here), truth)
    for k, column in enumerate(problem.W.T):
        step = 1e-5 * np.eye(here.size)[k]
        above, below = (
            make_law(name).torque(form.moved(truth, here + sign * step)[None, :], samples.velocity, samples.load)
            for sign in (1.0, -1.0)
        )
        difference = (above - below) / 2e-5
        np.testing.assert_allclose(column, difference, atol=1e-5 * max(1.0, np.abs(difference).max()))


def test_errors_of_the_parameters_are_as_large_as_their_sigma_though_the_noise_is_coloured():
    law, errors = make_law("tanh_stribeck"), []
    for seed in range(12):
        fit = fit_curve(law, curve("tanh_stribeck", KNEE, 2.0, 0.02, seed), CurveOptions(starts=2))
        errors.append((fit.values - KNEE) / fit.sigma)
    spread = np.sqrt(np.mean(np.square(errors)))
    assert 0.8 < spread < 1.5  # 72 numbers, correlated; sigma itself is known to a few tens of percent


def test_sampling_more_often_does_not_pretend_to_know_more():
    samples = curve("tanh_stribeck", KNEE, 2.0, 0.02)
    often = CurveSamples(*(np.repeat(column, 5) for column in (samples.velocity, samples.friction, samples.load)),
                         np.repeat(samples.segment, 5))  # fmt: skip
    law, options = make_law("tanh_stribeck"), CurveOptions(starts=8)
    ratio = fit_curve(law, often, options).sigma / fit_curve(law, samples, options).sigma
    np.testing.assert_allclose(ratio, 1.0, atol=0.25)


def test_outliers_pull_the_printed_loss_but_not_the_robust_one():
    samples = curve("tanh_stribeck", KNEE, 2.0, 0.01)
    friction = samples.friction.copy()
    friction[::23] += 15.0
    hit = CurveSamples(samples.velocity, friction, samples.load, samples.segment)
    law = make_law("tanh_stribeck")
    error = {robust: np.abs(fit_curve(law, hit, CurveOptions(robust)).values - KNEE) for robust in (False, True)}
    assert error[False][4] > 0.3  # the offset takes up their mean
    np.testing.assert_allclose(error[True] / KNEE, 0.0, atol=0.15)
    assert error[True][4] < 0.03


def test_the_band_is_narrow_where_data_was_and_widens_beyond():
    samples = curve("tanh_stribeck", KNEE, 0.3, 0.01)
    fit = fit_curve(make_law("tanh_stribeck"), samples)
    seen, beyond = fit.friction.predict(np.array([0.2]))[1], fit.friction.predict(np.array([2.0]))[1]
    truth = make_law("tanh_stribeck").torque(KNEE[None, :], np.array([2.0]))
    assert seen[0] < 0.02 and beyond[0] > 10.0 * seen[0]
    assert np.abs(fit.friction.predict(np.array([2.0]))[0] - truth)[0] < 3.0 * beyond[0]


def test_what_no_sample_shows_has_the_width_of_its_bounds_as_sigma():
    samples = curve("asymmetric", np.array([0.7, 0.9, 0.5, 0.6]), 1.0, 0.01)
    fit = fit_curve(make_law("asymmetric"), samples.select(samples.velocity > 0.0))
    largest = 10.0 * np.abs(samples.friction).max()
    np.testing.assert_allclose(fit.sigma[2:], [largest, largest / samples.top_speed], rtol=0.1)
    assert (fit.sigma[:2] < 0.02).all()


def test_parameters_never_leave_their_bounds_and_no_passive_one_is_negative():
    rng = np.random.default_rng(0)
    velocity = rng.normal(size=500)
    samples = CurveSamples(velocity, -0.5 * velocity + rng.normal(size=500), None, np.arange(500) // 50)
    fit = fit_curve(make_law("tanh_stribeck"), samples)
    low, high = np.array([parameter.bounds for parameter in make_law("tanh_stribeck").parameters]).T
    assert (fit.values >= low - 1e-12).all() and (fit.values <= high + 1e-12).all()


def test_the_result_does_not_depend_on_the_unit_of_torque():
    samples = curve("tanh_stribeck", KNEE, 2.0, 0.02)
    tiny = CurveSamples(samples.velocity, 1e-4 * samples.friction, samples.load, samples.segment)
    law = make_law("tanh_stribeck")
    scale = np.array([1e-4, 1e-4, 1.0, 1.0, 1e-4, 1.0])
    np.testing.assert_allclose(fit_curve(law, tiny).values, scale * fit_curve(law, samples).values, rtol=1e-3)


def test_a_refit_of_other_samples_starts_where_the_fit_is():
    samples = curve("tanh_stribeck", KNEE, 2.0, 0.02)
    fit = fit_curve(make_law("tanh_stribeck"), samples)
    np.testing.assert_allclose(refit(fit, samples), fit.values, rtol=1e-3)


def test_the_gradient_of_a_parameter_that_is_zero_is_not_lost():
    columns = torque_gradient(make_law("coulomb_viscous"), np.array([1e-300, 0.0]), np.array([0.5]), None)
    np.testing.assert_allclose(columns, [[1.0, 0.5]])


def test_bad_requests_get_one_clear_error():
    samples = curve("tanh_stribeck", KNEE, 2.0)
    with pytest.raises(InputError, match="6 usable samples cannot give the 6 parameters of 'tanh_stribeck'"):
        fit_curve(make_law("tanh_stribeck"), samples.select(slice(6)))
    still = CurveSamples(np.zeros(100), np.ones(100), None, np.zeros(100, dtype=int))
    with pytest.raises(InputError, match="no friction curve"):
        fit_curve(make_law("coulomb_viscous"), still)
    with pytest.raises(ConfigError, match="at least one start"):
        CurveOptions(starts=0)


OPTIONS = CurveOptions(starts=16)


def judged(law, parameters, top_speed, select=lambda samples: samples, noise=0.01):
    samples = select(curve(law, np.array(parameters, dtype=float), top_speed, noise))
    return parameter_identifiability("knee", fit_curve(make_law(law), samples, OPTIONS), samples)


def test_a_joint_that_moves_fast_and_slow_shows_all_six_parameters():
    result = judged("tanh_stribeck", KNEE, 2.0)
    assert result[0].all() and result[1] == ()


@pytest.mark.parametrize("top_speed", [0.1, 0.2, 0.35])
def test_a_joint_that_never_left_the_stribeck_region_does_not_show_viscous_friction(top_speed):
    result = judged("tanh_stribeck", KNEE, top_speed)
    assert not result[0][0]
    assert len(result[1]) == 1
    text, joint, detail = result[1][0]
    assert text.startswith("never left the Stribeck region, {}, so ") and joint == "knee"
    assert "viscous" in text and text.endswith("not identifiable") and detail.startswith(f"|dq| < {top_speed:.2g}")


def test_offset_is_known_even_in_the_stribeck_region():
    assert judged("tanh_stribeck", KNEE, 0.2)[0][4]


def test_a_joint_that_moved_one_way_only_does_not_show_the_friction_of_the_other_way():
    result = judged("asymmetric", (0.7, 0.9, 0.5, 0.6), 1.0, lambda samples: samples.select(samples.velocity > 0.0))
    assert result[0].tolist() == [True, True, False, False]
    ((text, joint, _),) = result[1]
    assert joint == "knee" and text == (
        "moved in one direction only, so coulomb_negative and viscous_negative are not identifiable: move in both "
        "directions, at several speeds"
    )


def test_a_viscous_friction_of_zero_is_known_to_be_none():
    assert judged("coulomb_viscous", (1.0, 0.0), 1.0)[0].all()


def test_a_shape_without_any_torque_is_not_shown():
    result = judged("tanh_stribeck", (0.2, 1.0, 0.0, 0.2, 0.0, 40.0), 2.0)
    assert not result[0][3]
    assert result[0][[0, 1, 4, 5]].all()
    assert any("stribeck_velocity" in text for text, *_ in result[1])


def test_equal_tangents_can_be_exchanged_and_that_is_reported():
    """g4 tanh(100 dq) may as well be one more of the first tangent and one less of a second one, or a second slope."""
    result = judged("makkar", (0.7, 100.0, 10.0, 0.6, 100.0, 0.9), 2.0)
    assert np.count_nonzero(~result[0][[1, 2, 4]]) >= 2
    assert result[0][5]
    assert all("gamma" in text for text, *_ in result[1])
