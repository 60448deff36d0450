"""Dry friction that depends on load and velocity (Hamon et al. 2010)."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.hamon.models import published_problem
from friction_estimator.config.robot import Coupling
from friction_estimator.identification.fixed_base_model import FixedBaseModel
from friction_estimator.identification.inverse_dynamics.estimated_parameters import (
    live_parameters,
    with_motor_torque_as_load,
)
from friction_estimator.identification.inverse_dynamics.findings import joint_scores
from friction_estimator.identification.inverse_dynamics.method import (
    estimate_inverse_dynamics,
    identify_inverse_dynamics,
)
from friction_estimator.identification.inverse_dynamics.options import InverseDynamicsOptions
from friction_estimator.identification.linear_problem import ORDINARY, SolverOptions
from friction_estimator.identification.rigid_body import RigidBodyOptions
from friction_estimator.identification.scoring import Rows
from friction_estimator.identification.uncertainty import solve
from friction_estimator.laws import make_law, make_linear_law
from friction_estimator.laws.identified import parameters_sigma
from friction_estimator.laws.published import LOAD_VELOCITY

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


def experiments(payloads=(None, PAYLOAD), noise=0.0, duration=10.0):
    motions = []
    for seed, payload in enumerate(payloads):
        motion = move(20 + seed, duration)
        effort = motor_torque(rigid_torque(motion, payload), motion[1])
        effort += noise * np.random.default_rng(seed).normal(size=effort.shape)
        motions.append(as_motion(motion, effort, payload, name=f"run {seed}"))
    return motions


def estimate(motions, **options):
    exact = {"urdf_sigma": np.inf, "offset": True, "delay": 0.0, "dead_zone": 1e-3, "parallel_hz": 20.0}
    chosen = {"law": "load_velocity", **exact, **options}
    return estimate_inverse_dynamics(motions, FixedBaseModel(URDF, JOINTS), InverseDynamicsOptions(**chosen))


def identify(motions, **options):
    """Two folds, and every sample: these tests are not about choices and scores."""
    chosen = InverseDynamicsOptions(**{"folds": 2, "dead_zone": 1e-3, **options})
    return identify_inverse_dynamics(motions, FixedBaseModel(URDF, JOINTS), chosen)


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
    solution, notes = estimate(experiments(noise=0.2), solver=SolverOptions(robust=False))
    sentence = next(note for note in notes if note.startswith("q_s"))
    found = [float(word.split()[-1]) for word in sentence.split(": ")[1].split(", ")]
    speeds = np.quantile(np.abs(move(20)[1]), 0.95, axis=0)
    assert min(found) < STRIBECK * 1.3 and max(found) > STRIBECK / 1.3
    assert found[0] / speeds[0] == pytest.approx(found[1] / speeds[1], rel=0.2)
    live = live_parameters(solution)
    np.testing.assert_allclose(live.values[:, -1], found, rtol=0.01)
    assert ((0.0 < parameters_sigma(live)[:, -1]) & (parameters_sigma(live)[:, -1] < 0.4 * np.array(found))).all()


def test_without_payload_alpha_of_both_quadrants_are_separated_by_the_prior_of_gearboxes_only():
    solution, _ = estimate(experiments((None,), 0.2, 15.0), stribeck_velocity=STRIBECK, solver=ORDINARY)
    sigma = np.sqrt(np.diagonal(solution.covariance))
    found = dict(zip(solution.model.names, sigma, strict=True))
    both, _ = estimate(experiments(noise=0.2, duration=15.0), stribeck_velocity=STRIBECK, solver=ORDINARY)
    known = dict(zip(both.model.names, np.sqrt(np.diagonal(both.covariance)), strict=True))
    assert found["shoulder/alpha_motor"] > 0.1 > 2.0 * known["shoulder/alpha_motor"]


def test_shared_factors_fit_better_than_printed_products_with_fewer_parameters():
    shared, _ = estimate(experiments(noise=0.3), stribeck_velocity=STRIBECK, solver=ORDINARY)
    model = shared.model
    problem = published_problem(shared.observations, model.body, model.friction, 1, shared.usable)
    apart = solve(problem, ORDINARY)
    rows = shared.fit.problem.joint == 1
    assert np.linalg.norm(shared.fit.residual[rows]) < 0.9 * np.linalg.norm(apart.residual)  # whose sign is eq. 26's
    assert sum(name.startswith("elbow/") for name in shared.names) + len(model.body.names) < len(problem.names)
    a_m = dict(zip(problem.names, apart.values, strict=True))["a_m known load"]
    assert a_m == pytest.approx(1.0 + ALPHA_M[1], abs=0.1)


def test_the_load_dependent_model_beats_the_usual_one_on_unseen_segments():
    motions = experiments(noise=0.3)
    usual, load = (
        identify(motions, law=law, stribeck_velocity=STRIBECK) for law in ("coulomb_viscous", "load_velocity")
    )
    for old, new in zip(usual.scores, load.scores, strict=True):
        assert new.held_out_error < 0.7 * old.held_out_error


def test_a_registered_law_that_depends_on_the_load_does_not_explain_the_noise_by_itself():
    law = make_linear_law("load_quadrants")
    motions = experiments(noise=0.5)
    result = identify(motions, law=law.name)
    assert all(score.fit_error > 0.1 for score in result.scores)  # what the filter leaves of 0.5 N m
    load_motor = result.friction.values[:, law.parameter_names.index("load_motor")]
    np.testing.assert_allclose(load_motor, ALPHA_M / (1.0 + ALPHA_M), atol=0.06)


LOADED = np.array([[4.0, 0.10, 3.0, 0.06, 3.0, 0.4], [1.5, 0.08, 1.0, 0.10, 1.0, -0.2]])
"""Parameters of ``load_quadrants``, the load being the torque behind friction."""


def loaded(seed, noise=0.0):
    motion = move(seed, 20.0)
    output = rigid_torque(motion)
    effort = output + make_law("load_quadrants").torque(LOADED, motion[1], output)
    return as_motion(motion, effort + noise * np.random.default_rng(seed).normal(size=output.shape))


def quadrants(known_inertia):
    body = RigidBodyOptions(known_inertia=known_inertia)
    found = identify([loaded(50, 0.3)], law="load_quadrants", body=body, urdf_sigma=np.inf)
    wanted = [found.parameters.names.index(f"{j}/{p}") for j in JOINTS for p in found.friction.parameter_names[0]]
    return found, found.parameters.values[wanted].reshape(2, 6), found.parameters.sigma[wanted].reshape(2, 6)


def test_with_known_inertia_friction_of_the_load_comes_out_as_it_went_in():
    """Without it, and without a payload, a common factor of all torques hides in the load's factors."""
    found, values, sigma = quadrants(True)
    _, _, vague = quadrants(False)
    error = (values - LOADED) / sigma
    assert np.abs(error).max() < 2.0 and 0.6 < np.sqrt(np.mean(error**2)) < 1.4
    assert (sigma[:, [1, 3]] < 0.1 * LOADED[:, [1, 3]]).all()
    assert (vague[:, [1, 3]] > 10.0 * sigma[:, [1, 3]]).all()
    other = loaded(90)  # a motion that the fit has not seen, through the law that the live node takes
    friction = other.effort - rigid_torque((other.position, other.velocity, other.acceleration))
    live = make_law("load_quadrants").torque(found.friction.values, other.velocity, other.effort)
    assert (np.std(live - friction, axis=0) < 0.06 * np.std(friction, axis=0)).all()


def test_friction_of_the_motor_torque_itself_is_predicted_although_the_fit_takes_the_load_behind_friction():
    """``tau = tau_out + f(dq, tau)``, where both quadrants are possible the one that drives."""
    law, motions = make_law("load_quadrants"), []
    for seed in (50, 90):
        motion = move(seed, 20.0)
        direction = np.sign(motion[1])
        rest = rigid_torque(motion) + LOADED[:, 4] * motion[1] + LOADED[:, 5]
        drives = (rest + LOADED[:, 0] * direction) / (1.0 - LOADED[:, 1])
        driven = (rest + LOADED[:, 2] * direction) / (1.0 + LOADED[:, 3])
        motions.append(as_motion(motion, np.where(drives * direction > 0.0, drives, driven)))
    noise = 0.3 * np.random.default_rng(1).normal(size=motions[0].effort.shape)
    recorded = replace(motions[0], effort=motions[0].effort + noise)
    found = identify([recorded], law=law.name, body=RigidBodyOptions(known_inertia=True))
    friction = law.torque(LOADED, motions[1].velocity, motions[1].effort)
    live = law.torque(found.friction.values, motions[1].velocity, motions[1].effort)
    assert (np.std(live - friction, axis=0) < 0.08 * np.std(friction, axis=0)).all()


def test_the_live_law_gives_the_identified_friction_with_the_motor_torque_as_load():
    motions = experiments(noise=0.2)
    result = identify(motions, law="load_velocity", stribeck_velocity=STRIBECK)
    law = make_law("load_velocity")
    for joint, samples in enumerate(result.samples):
        used = samples.used
        live = law.torque(result.friction.values[joint][None], samples.velocity[used], samples.load[used])
        difference = np.sqrt(np.mean((live - samples.fitted[used]) ** 2))
        assert difference < 0.05 * np.sqrt(np.mean(samples.fitted[used] ** 2))


@pytest.mark.parametrize("law", ["load_quadrants", "six_slope_load"])
def test_friction_of_another_motor_is_not_explained_by_the_torque_itself(law):
    """Friction is most of the torque of a light joint: ``friction = motor torque`` would leave the least over."""
    coupling = Coupling(JOINTS, ("first", "second"), np.linalg.inv(np.array([[1.0, 0.0], [1.0, 1.0]])))
    motion = move(30, 20.0)
    second = motion[1].sum(axis=1, keepdims=True)
    effort = 0.1 * rigid_torque(motion) + 2.0 * np.sign(motion[1]) + 4.0 * np.sign(second) + 2.0 * second
    result = identify([as_motion(motion, effort)], law=law, coupling=coupling, coupled_friction="joints_and_motors")
    names = make_linear_law(law).parameter_names
    of_load = [k for k, name in enumerate(names) if name in ("load_motor", "load_linear")]
    found, sigma = result.friction.values[:, of_load], parameters_sigma(result.friction)[:, of_load]
    assert found.max() < 0.7
    assert (found < 3.0 * sigma).all()  # the truth is zero


def test_a_torque_that_was_not_seen_takes_no_part_in_its_own_prediction():
    motions = experiments((None,), noise=0.3)
    solution, _ = estimate(motions, law="load_quadrants")
    count = solution.usable[0].shape
    every = Rows(JOINTS, *np.zeros((5, *count)), solution.usable[0], np.full(2, np.inf))
    plain = joint_scores(solution, SolverOptions(), 2, every)
    row = solution.observations[0]
    noise = 20.0 * np.random.default_rng(4).normal(size=row.torque.shape)
    noise[row.segment >= np.median(row.segment)] = 0.0
    changed = replace(solution, observations=(replace(row, torque=row.torque + noise),))
    for joint, (one, two) in enumerate(zip(plain, joint_scores(changed, SolverOptions(), 2, every), strict=True)):
        added = np.sqrt(np.mean(noise[solution.usable[0][:, joint], joint] ** 2))
        assert np.sqrt(two.held_out_error**2 - one.held_out_error**2) > 0.98 * added


@pytest.mark.parametrize(
    ("law", "values"),
    [
        (make_linear_law("load_quadrants"), [2.0, 0.2, 1.5, 0.15, 0.0, 0.0]),
        (LOAD_VELOCITY.at(0.1), [2.0, 3.0, 0.2, 0.2, 1.5, 2.5, 0.15, 0.15, 0.0, 0.0]),
    ],
)
def test_factors_of_the_load_behind_friction_become_those_of_the_motor_torque(law, values):
    """alpha / (1 + alpha) where the motor drives, alpha / (1 - alpha) where it is driven, and the rest alike."""
    rng = np.random.default_rng(5)
    velocity, load = rng.normal(0.0, 0.5, 400), rng.uniform(5.0, 40.0, 400) * rng.choice([-1.0, 1.0], 400)
    values, half = np.array(values), len(values) // 2 - 1
    covariance = np.diag((0.01 * values) ** 2)
    found, spread = with_motor_torque_as_load(law, values, covariance, velocity, load)
    alpha = values[[half - 1, 2 * half - 1]]
    divisor = np.repeat([1.0 + alpha[0], 1.0 - alpha[1]], half)
    np.testing.assert_allclose(found[: 2 * half], values[: 2 * half] / divisor, rtol=0.03)
    drawn = [
        with_motor_torque_as_load(law, rng.multivariate_normal(values, covariance), covariance, velocity, load)[0]
        for _ in range(100)
    ]
    own = np.sqrt(np.diagonal(spread))[: 2 * half]
    assert (own > 0.8 * np.std(drawn, axis=0)[: 2 * half]).all()
    assert (own < 0.1 * found[: 2 * half]).all()
