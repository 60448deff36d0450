"""Fits of a linear law: to the curve of another law, and of Coulomb and viscous friction to any law."""

from __future__ import annotations

import numpy as np
import pytest

from friction_estimator.estimation.estimator import Estimator
from friction_estimator.io.parameters import load_parameters, save_parameters
from friction_estimator.laws import law_names, linear_law_names, make_law, make_linear_law
from friction_estimator.laws.fit_law import fit_coulomb_viscous, fit_law_to_curve, with_linear_laws
from friction_estimator.laws.identified import IdentifiedParameters
from test.biped import suralp_config

KNEE = np.array([0.2, 1.0, 0.2, 0.2, 0.0, 40.0])
CERTAIN = np.diag([0.01, 0.01, 0.01, 0.01, 0.01, 0.5]) ** 2
CURVE = make_law("tanh_stribeck")
VELOCITY = np.concatenate((-np.geomspace(0.003, 3.0, 30), np.geomspace(0.003, 3.0, 30)))


def saved(joints, values=KNEE, law="tanh_stribeck", covariance=CERTAIN):
    n = len(joints)
    return IdentifiedParameters(
        tuple(joints), (law,) * n, np.tile(values, (n, 1)), np.tile(covariance, (n, 1, 1)),
        np.full(n, 1e-4), np.zeros(n), np.full(n, 500.0),
    )  # fmt: skip


@pytest.mark.parametrize("name", linear_law_names())
def test_a_curve_of_the_linear_law_itself_is_fitted_exactly(name):
    """Coulomb, viscous and an offset apart, any law meets a curve of its own kind."""
    law = make_linear_law(name)
    truth = np.array([0.4 if keep else 0.2 for keep in law.nonnegative]) * np.minimum(law.prior_std, 1.0)
    found = fit_law_to_curve(law, law, truth, 1e-10 * np.eye(truth.size), 0.0)
    load = np.linspace(-20.0, 20.0, VELOCITY.size)
    wanted = (law.regressor(VELOCITY, load) * truth).sum(axis=-1)
    np.testing.assert_allclose(law.regressor(VELOCITY, load) @ found.values + found.offset, wanted, atol=2e-3)
    assert found.misfit < 1e-3


def test_the_default_law_of_the_live_filter_follows_a_stribeck_curve_within_its_own_sigma():
    target = make_linear_law("six_slope_load")
    found = fit_law_to_curve(target, CURVE, KNEE, CERTAIN, 1e-4)
    phi = target.regressor(VELOCITY, np.zeros(VELOCITY.size))
    sigma = np.sqrt(np.einsum("ij,jk,ik->i", phi, found.covariance, phi))
    error = phi @ found.values - CURVE.torque(KNEE[None, :], VELOCITY)
    assert np.abs(error).max() < 0.03
    assert np.sqrt(np.mean((error / sigma) ** 2)) < 1.5


def test_velocities_that_the_curve_never_saw_stay_uncertain():
    unsure = CERTAIN.copy()
    unsure[0, 0] = 1.0  # F_v
    target = make_linear_law("six_slope_load")
    found = fit_law_to_curve(target, CURVE, KNEE, unsure, 1e-4)
    phi = target.regressor(np.array([0.02, 2.0]), np.zeros(2))
    sigma = np.sqrt(np.einsum("ij,jk,ik->i", phi, found.covariance, phi))
    assert sigma[0] < 0.1 and sigma[1] > 1.0


def test_the_sigma_grows_with_the_misfit_of_the_linear_law():
    rough, fine = (
        fit_law_to_curve(make_linear_law(name), CURVE, KNEE, CERTAIN, 1e-4) for name in ("coulomb_viscous", "six_slope")
    )
    assert rough.misfit > 10.0 * fine.misfit
    assert np.sqrt(rough.covariance[0, 0]) > 0.5 * rough.misfit


def test_no_parameter_of_a_passive_joint_becomes_negative():
    for name in linear_law_names():
        law = make_linear_law(name)
        found = fit_law_to_curve(law, CURVE, np.array([0.0, 1.0, 3.0, 0.1, 0.0, 100.0]), CERTAIN, 1e-4)
        assert (found.values[list(law.nonnegative)] >= 0.0).all()


def test_only_nonlinear_laws_of_joints_that_the_robot_has_are_fitted():
    start = saved(("knee", "tail"))
    fitting, notes = with_linear_laws(start, ("hip", "knee"), ("three_slope", "coulomb_viscous"))
    assert fitting.law_names == ("coulomb_viscous", "tanh_stribeck")
    np.testing.assert_array_equal(fitting.values[1], KNEE)
    assert fitting.values[0, 2:].tolist() == [0.0] * 4  # padding
    assert fitting.residual_variance[0] > 10.0 * start.residual_variance[0]
    assert len(notes) == 1 and notes[0].startswith(
        "knee: the curve of tanh_stribeck was fitted by coulomb_viscous with an error of 0."
    )
    linear = saved(("knee",), np.array([1.0, 0.1]), "coulomb_viscous", np.eye(2))
    assert with_linear_laws(linear, ("knee",), ("three_slope",)) == (linear, ())


def test_an_offset_that_the_linear_law_lacks_is_named_and_does_not_bend_the_rest():
    values = KNEE + np.array([0, 0, 0, 0, 0.8, 0])
    fitting, notes = with_linear_laws(saved(("knee",), values), ("knee",), ("six_slope",))
    plain, _ = with_linear_laws(saved(("knee",)), ("knee",), ("six_slope",))
    assert notes[0].endswith("without its offset of 0.8 N m")
    np.testing.assert_allclose(fitting.values, plain.values, atol=0.02)
    kept, notes = with_linear_laws(saved(("knee",), values), ("knee",), ("load_quadrants",))
    assert kept.values[0, 5] == pytest.approx(0.8, abs=0.05) and "offset" not in notes[0]


@pytest.mark.parametrize("observer", ["kalman", "fbse"])
def test_a_filter_starts_from_the_saved_file_of_a_nonlinear_fit(urdf_xml, tmp_path, observer):
    save_parameters(tmp_path / "curve.yaml", saved(("l_knee", "r_knee")))
    estimator = Estimator(suralp_config(observer=observer), urdf_xml)
    notes = estimator.restore(load_parameters(tmp_path / "curve.yaml"))
    assert [note.split(":")[0] for note in notes[:-1]] == ["l_knee", "r_knee"]
    assert "nothing was saved of l_hip_yaw" in notes[-1] and "knee" not in notes[-1]
    law, row = make_linear_law(estimator.identified.law_names[3]), estimator.joint_names.index("l_knee")
    values = estimator.identified.values[row, : len(law.parameter_names)]
    velocity = np.array([0.3, 1.0, 2.0])
    torque = law.regressor(velocity, np.zeros(3)) @ values
    truth = CURVE.torque(KNEE[None, :], velocity)
    np.testing.assert_allclose(torque, truth, atol=0.05 if observer == "kalman" else 0.4)
    assert not estimator.identified.values[0].any()  # joints that the file lacks


EVENLY = np.linspace(-1.0, 1.0, 200)
NO_LOAD = np.zeros(EVENLY.size)


def test_coulomb_and_viscous_friction_stays_what_it_is_to_the_bit() -> None:
    simple = fit_coulomb_viscous(make_law("coulomb_viscous"), np.array([0.1 + 0.2, 1.1]), EVENLY, NO_LOAD)
    assert (simple.coulomb, simple.viscous, simple.offset) == (0.1 + 0.2, 1.1, 0.0)
    assert (simple.error, simple.lost) == (0.0, ())


def test_coulomb_and_viscous_friction_are_the_least_squares_fit_to_the_law() -> None:
    law, parameters = make_law("tanh_stribeck"), np.array([2.0, 1.5, 0.8, 0.05, 0.3, 200.0])
    simple = fit_coulomb_viscous(law, parameters, EVENLY, NO_LOAD)
    torque = law.torque(np.tile(parameters, (EVENLY.size, 1)), EVENLY)

    def error(coulomb: float, viscous: float, offset: float) -> float:
        return float(np.sqrt(np.mean((torque - coulomb * np.sign(EVENLY) - viscous * EVENLY - offset) ** 2)))

    best = np.array([simple.coulomb, simple.viscous, simple.offset])
    assert simple.error == pytest.approx(error(*best))
    for step in 1e-3 * np.vstack((np.eye(3), -np.eye(3))):
        assert error(*(best + step)) > simple.error
    assert simple.offset == pytest.approx(0.3, abs=1e-9)
    assert [part.split(",")[0] for part in simple.lost] == ["the shape over velocity (Stribeck)", "the offset"]


def test_load_is_averaged_and_its_effect_is_reported() -> None:
    load = np.tile([-20.0, -5.0, 5.0, 20.0], EVENLY.size // 4)
    simple = fit_coulomb_viscous(make_law("load_quadrants"), np.array([2.0, 0.1, 2.0, 0.1, 3.0, 0.0]), EVENLY, load)
    assert simple.coulomb == pytest.approx(2.0 + 0.1 * 12.5, abs=1e-3)
    assert simple.viscous == pytest.approx(3.0, abs=1e-3)
    assert simple.lost == ("the dependence on load and velocity, up to 0.75 N m",)


def test_a_load_that_goes_with_the_velocity_counts_as_it_does() -> None:
    """The motor of an empty joint carries its friction: under that load the law is the friction itself."""
    friction = 5.0 * np.sign(EVENLY) + 2.0 * EVENLY
    simple = fit_coulomb_viscous(make_law("load_quadrants"), np.array([0.0, 1.0, 9.0, 0.3, 0.0, 0.0]), EVENLY, friction)
    assert (simple.coulomb, simple.viscous) == (pytest.approx(5.0), pytest.approx(2.0))
    assert simple.lost == ()


def test_a_difference_between_the_directions_is_reported_with_its_size() -> None:
    simple = fit_coulomb_viscous(make_law("asymmetric"), np.array([2.0, 1.0, 2.0, 3.0]), EVENLY, NO_LOAD)
    assert simple.viscous == pytest.approx(2.0)
    direct = 0.5 * (1.0 - 3.0) * np.abs(EVENLY)  # the even part of the law
    assert simple.asymmetry == pytest.approx(np.abs(direct - direct.mean()).max())
    assert simple.shape < 1e-9


def test_friction_never_drives() -> None:
    """Stribeck friction that falls over the whole range would have a negative viscous part."""
    falling = np.array([0.0, 1.0, 2.0, 0.8, 0.0, 1e3])
    simple = fit_coulomb_viscous(make_law("tanh_stribeck"), falling, EVENLY, NO_LOAD)
    assert simple.viscous == pytest.approx(0.0, abs=1e-6)
    assert simple.coulomb > 1.0


def test_one_direction_alone_has_no_offset() -> None:
    """Coulomb friction and an offset cannot be told apart there."""
    simple = fit_coulomb_viscous(
        make_law("tanh_stribeck"), np.array([2.0, 1.0, 0.0, 0.1, 0.5, 1e3]), EVENLY[120:], NO_LOAD[120:]
    )
    assert simple.offset == 0.0
    assert (simple.coulomb, simple.viscous) == (pytest.approx(1.5), pytest.approx(2.0))


def test_laws_that_need_a_load_are_known() -> None:
    assert {name for name in law_names() if make_law(name).depends_on_load} == {
        name for name in law_names() if "load" in name
    }
