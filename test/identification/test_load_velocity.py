"""Dry friction that depends on load and velocity (Hamon et al. 2010)."""

import numpy as np
import pytest

from friction_estimator.core.friction import make_linear_law
from friction_estimator.identification.inverse_dynamics.load_velocity_printed import printed_problem
from friction_estimator.identification.inverse_dynamics.method import (
    estimate_inverse_dynamics,
    identify_inverse_dynamics,
)
from friction_estimator.identification.inverse_dynamics.options import InverseDynamicsOptions
from friction_estimator.identification.regression.least_squares import ORDINARY, SolverOptions, solve
from friction_estimator.identification.rigid_body.fixed_base_model import FixedBaseModel

from .arm import JOINTS, PAYLOAD, URDF, as_motion, move, rigid_torque

ALPHA_M, GAMMA_M, ALPHA_G, GAMMA_G = np.array([[0.10, 0.08], [0.25, 0.2], [0.06, 0.1], [0.2, 0.25]])
BETA_M, DELTA_M, BETA_G, DELTA_G = np.array([[4.0, 1.5], [7.0, 2.5], [3.0, 1.0], [5.0, 2.0]])
VISCOUS, OFFSET = np.array([3.0, 1.0]), np.array([0.4, -0.2])
STRIBECK = 0.08


def motor_torque(output, velocity):
    """Equation 25, written as it stands there."""
    fading = np.exp(-np.abs(velocity) / STRIBECK)
    driving = output * velocity > 0.0
    load = np.where(driving, 1 + ALPHA_M + (GAMMA_M - ALPHA_M) * fading, 1 - ALPHA_G - (GAMMA_G - ALPHA_G) * fading)
    dry = np.where(driving, BETA_M + (DELTA_M - BETA_M) * fading, BETA_G + (DELTA_G - BETA_G) * fading)
    return load * output + dry * np.sign(velocity) + VISCOUS * velocity + OFFSET


def experiments(payloads=(None, PAYLOAD), noise=0.0, duration=15.0):
    motions = []
    for seed, payload in enumerate(payloads):
        motion = move(20 + seed, duration)
        effort = motor_torque(rigid_torque(motion, payload), motion[1])
        effort += noise * np.random.default_rng(seed).normal(size=effort.shape)
        motions.append(as_motion(motion, effort, payload, name=f"run {seed}"))
    return motions


def estimate(motions, **options):
    chosen = {"law": "load_velocity", "significance": None, "dead_zone": 1e-3, "cutoff_hz": 20.0, **options}
    return estimate_inverse_dynamics(motions, FixedBaseModel(URDF, JOINTS), InverseDynamicsOptions(**chosen))


def by_name(solution):
    return dict(zip(solution.model.names, solution.values, strict=True))


def test_factors_and_dry_friction_come_out_as_they_went_in():
    solution, _ = estimate(experiments(), stribeck_velocity=STRIBECK)
    found = by_name(solution)
    assert solution.fit.relative_error < 1e-6
    for joint, name in enumerate(JOINTS):
        assert found[f"{name}/alpha_motor"] == pytest.approx(ALPHA_M[joint], abs=1e-5)
        assert found[f"{name}/alpha_generator"] == pytest.approx(ALPHA_G[joint], abs=1e-5)
        assert found[f"{name}/gamma_alpha_motor"] == pytest.approx((GAMMA_M - ALPHA_M)[joint], abs=1e-5)
        assert found[f"{name}/beta_motor"] == pytest.approx(BETA_M[joint], rel=1e-5)
        assert found[f"{name}/viscous"] == pytest.approx(VISCOUS[joint], rel=1e-5)


def test_the_stribeck_velocity_is_found():
    _, notes = estimate(experiments(noise=0.2), solver=SolverOptions(robust=False))
    sentence = next(note for note in notes if note.startswith("q_s"))
    found = [float(word.split()[-1]) for word in sentence.split(": ")[1].split(", ")]
    speeds = np.quantile(np.abs(move(20)[1]), 0.95, axis=0)
    assert min(found) < STRIBECK * 1.3 and max(found) > STRIBECK / 1.3
    assert found[0] / speeds[0] == pytest.approx(found[1] / speeds[1], rel=0.2)


def test_without_payload_alpha_of_both_quadrants_are_told_apart_only_by_what_gearboxes_are_like():
    solution, _ = estimate(experiments((None,), 0.2), velocity_dependent=False, solver=ORDINARY)
    sigma = np.sqrt(np.diagonal(solution.covariance))
    found = dict(zip(solution.model.names, sigma, strict=True))
    both, _ = estimate(experiments(noise=0.2), velocity_dependent=False, solver=ORDINARY)
    known = dict(zip(both.model.names, np.sqrt(np.diagonal(both.covariance)), strict=True))
    assert found["shoulder/alpha_motor"] > 0.1 > 2.0 * known["shoulder/alpha_motor"]


def test_shared_factors_fit_better_than_printed_products_with_fewer_parameters():
    shared, _ = estimate(experiments(noise=0.3), stribeck_velocity=STRIBECK, solver=ORDINARY)
    model = shared.model
    problem = printed_problem(shared.observations, model.body, model.friction, 1, shared.usable)
    apart = solve(problem, ORDINARY)
    rows = shared.fit.problem.joint == 1
    assert np.linalg.norm(shared.fit.residual[rows]) < 0.9 * np.linalg.norm(apart.residual)  # whose sign is eq. 26's
    assert sum(name.startswith("elbow/") for name in shared.names) + len(model.body.names) < len(problem.names)
    a_m = dict(zip(problem.names, apart.values, strict=True))["a_m known load"]
    assert a_m == pytest.approx(1.0 + ALPHA_M[1], abs=0.1)


def test_the_load_dependent_model_beats_the_usual_one_on_unseen_segments():
    motions = experiments(noise=0.3)
    model = FixedBaseModel(URDF, JOINTS)
    usual, load = (
        identify_inverse_dynamics(motions, model, InverseDynamicsOptions(law=law, stribeck_velocity=STRIBECK))
        for law in ("coulomb_viscous", "load_velocity")
    )
    for old, new in zip(usual.scores, load.scores, strict=True):
        assert new.model_error < 0.7 * old.model_error


def test_a_registered_law_that_depends_on_the_load_does_not_explain_the_noise_by_itself():
    law = make_linear_law("load_quadrants")
    motions = experiments(noise=0.5)
    result = identify_inverse_dynamics(motions, FixedBaseModel(URDF, JOINTS), InverseDynamicsOptions(law=law.name))
    assert all(score.fit_error > 0.1 for score in result.scores)  # what the filter leaves of 0.5 N m
    load_motor = result.friction.values[:, law.parameter_names.index("load_motor")]
    np.testing.assert_allclose(load_motor, ALPHA_M / (1.0 + ALPHA_M), atol=0.06)


def test_the_live_law_is_the_projection_of_the_identified_friction():
    result = identify_inverse_dynamics(
        experiments(noise=0.2),
        FixedBaseModel(URDF, JOINTS),
        InverseDynamicsOptions(law="load_velocity", live_law="load_quadrants", stribeck_velocity=STRIBECK),
    )
    law = make_linear_law("load_quadrants")
    for joint, samples in enumerate(result.samples):
        used = samples.used
        live = law.regressor(samples.velocity[used], samples.load[used]) @ result.friction.values[joint]
        difference = np.sqrt(np.mean((live - samples.fitted[used]) ** 2))
        assert difference < 0.35 * np.sqrt(np.mean(samples.fitted[used] ** 2))
