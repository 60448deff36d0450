"""A nonlinear curve said in a linear law: exact where it can be, honest where it cannot."""

import numpy as np
import pytest

from friction_estimator.estimation.estimator import Estimator
from friction_estimator.io.parameters import load_parameters, save_parameters
from friction_estimator.laws import linear_law_names, make_law, make_linear_law
from friction_estimator.laws.fit_law import fit_law_to_curve, with_linear_laws
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
def test_a_curve_that_the_linear_law_can_say_is_said_exactly_by_it(name):
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


def test_the_sigma_grows_with_what_the_linear_law_cannot_say():
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


def test_only_nonlinear_laws_of_joints_that_the_robot_has_are_said_anew():
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
