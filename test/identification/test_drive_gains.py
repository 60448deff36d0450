"""Claims about currents as torques: a known mass or known links give the gains of the drives."""

import re
from dataclasses import replace

import numpy as np
import pytest

from friction_estimator.config.robot import Coupling
from friction_estimator.errors import ConfigError, InputError
from friction_estimator.identification.fixed_base_model import FixedBaseModel
from friction_estimator.identification.inverse_dynamics.method import identify_inverse_dynamics
from friction_estimator.identification.inverse_dynamics.options import InverseDynamicsOptions
from friction_estimator.identification.joint_log import Payload
from friction_estimator.identification.rigid_body import RigidBodyOptions

from .arm import COULOMB, JOINTS, PAYLOAD, URDF, VISCOUS, as_motion, coulomb_viscous, move, rigid_torque

GAINS = np.array([14.0, 6.0])
"""Torque per ampere."""
MASS_ALONE = Payload(PAYLOAD.frame, PAYLOAD.mass)
BODY = Payload(PAYLOAD.frame, PAYLOAD.mass, np.array([0.04, 0.0, 0.0]), PAYLOAD.inertia)
OPTIONS = InverseDynamicsOptions(drive_gains=True, parallel_hz=20.0)


def model():
    return FixedBaseModel(URDF, JOINTS)


def experiments(gains=GAINS, noise=0.0, payload=MASS_ALONE, seed=0):
    """Currents without and with the payload, of which ``payload`` is known."""
    found, rng = [], np.random.default_rng(seed + 50)
    for number, (carried, known) in enumerate(((None, None), (BODY, payload))):
        motion = move(seed + number)
        torque = rigid_torque(motion, carried) + coulomb_viscous(motion[1]) + noise * rng.normal(size=motion[0].shape)
        found.append(as_motion(motion, torque / gains, known))
    return found


def gains_of(result):
    table = result.parameters
    rows = [table.names.index(f"{joint}/drive_gain") for joint in JOINTS]
    return table.values[rows], table.sigma[rows]


def about_gains(result):
    return [text for text in result.verdicts if "drive gains" in text or "drive_gains" in text]


def test_currents_and_the_mass_of_a_payload_give_drive_gains_and_friction_in_newton_metres():
    result = identify_inverse_dynamics(experiments(), model(), OPTIONS)
    np.testing.assert_allclose(gains_of(result)[0], GAINS, rtol=1e-5)
    np.testing.assert_allclose(result.friction.values, np.column_stack((COULOMB, VISCOUS)), rtol=1e-4)
    assert [result.drives[joint].gain for joint in JOINTS] == pytest.approx(GAINS, rel=1e-5)
    assert any("multiply efforts by the drive gains" in text for text in result.verdicts)


def test_links_that_are_known_give_drive_gains_without_a_payload():
    options = replace(OPTIONS, body=RigidBodyOptions(known_inertia=True))
    result = identify_inverse_dynamics(experiments()[:1], model(), options)
    np.testing.assert_allclose(gains_of(result)[0], GAINS, rtol=1e-5)


def test_sigma_of_gains_and_friction_holds_under_noise():
    errors = []
    for seed in range(0, 8, 2):
        result = identify_inverse_dynamics(experiments(noise=0.5, seed=seed), model(), OPTIONS)
        gains, sigma = gains_of(result)
        spread = np.sqrt(np.diagonal(result.friction.covariance, axis1=1, axis2=2))
        friction = (result.friction.values - np.column_stack((COULOMB, VISCOUS))) / spread
        errors += [*(gains - GAINS) / sigma, *friction.ravel()]
        assert (sigma < 0.1 * GAINS).all()
    assert np.mean(np.square(errors)) < 2.0
    assert np.mean(np.abs(errors) < 2.0) > 0.8


def test_a_payload_shows_gains_that_nobody_asked_for():
    (found,) = about_gains(identify_inverse_dynamics(experiments(np.array([0.8, 1.25])), model()))
    shown = [float(number) for number in re.findall(r"(\S+) \((?:shoulder|elbow)\)", found)]
    np.testing.assert_allclose(shown, [1.25, 0.8], rtol=0.01)
    assert not about_gains(identify_inverse_dynamics(experiments(np.ones(2), noise=0.5), model()))


def test_centre_of_mass_and_inertia_of_a_payload_are_found_when_only_its_mass_is_known():
    result = identify_inverse_dynamics(experiments(np.ones(2)), model())
    found = dict(zip(result.parameters.names, result.parameters.values, strict=True))
    assert found["mx of the payload of 2 kg at hand"] == pytest.approx(0.04 * PAYLOAD.mass, abs=1e-3)
    assert max(score.relative_error for score in result.scores) < 1e-3


@pytest.mark.parametrize(
    "options, message",
    [
        (replace(OPTIONS, body=RigidBodyOptions(payload_scale=True)), "payload_scale out"),
        (replace(OPTIONS, coupling=Coupling(JOINTS, ("a", "b"), np.array([[1.0, 0.0], [1.0, 1.0]]))), "single joints"),
    ],
)
def test_options_that_explain_the_same_are_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        identify_inverse_dynamics(experiments(), model(), options)


def test_gains_that_nothing_decides_are_refused():
    with pytest.raises(ConfigError, match="body of known mass"):
        identify_inverse_dynamics(experiments()[:1], model(), OPTIONS)
    with pytest.raises(InputError, match="same payload"):
        identify_inverse_dynamics(experiments()[1:], model(), OPTIONS)
    with pytest.raises(InputError, match="wrong sign"):
        identify_inverse_dynamics(experiments(-GAINS), model(), OPTIONS)
