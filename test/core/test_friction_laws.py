"""Claims about all friction laws in the registry."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from friction_estimator.core.exceptions import ConfigError
from friction_estimator.core.friction import LinearFrictionLaw, law_names, make_law

TABLE_I = np.array([[0.7, 100, 10, 0.6, 100, 0.9], [0.05, 100, 10, 0.01, 100, 0.9]])
PARAMETERS = {
    "coulomb_viscous": np.array([[0.7, 0.9], [0.2, 0.1]]),
    "makkar": TABLE_I,
    "stribeck_load": np.array([[5.0, 8.0, 1.51, 4.0, 0.002], [1.0, 2.0, 0.1, 3.0, 0.0]]),
}


@pytest.mark.parametrize("name", law_names())
@given(velocity=st.lists(st.floats(-5, 5), min_size=2, max_size=2))
def test_friction_resists_motion_and_is_odd(name, velocity):
    law, load, dq = make_law(name), np.array([10.0, -4.0]), np.array(velocity)
    torque = law.torque(PARAMETERS[name], dq, load)
    assert (torque * dq >= 0.0).all()
    np.testing.assert_allclose(law.torque(PARAMETERS[name], -dq, load), -torque)


@pytest.mark.parametrize("name", [name for name in law_names() if isinstance(make_law(name), LinearFrictionLaw)])
@given(velocity=st.lists(st.floats(-5, 5), min_size=2, max_size=2))
def test_linear_laws_are_their_regressor_times_their_parameters(name, velocity):
    law, dq = make_law(name), np.array(velocity)
    np.testing.assert_allclose(
        (law.regressor(dq) * PARAMETERS[name]).sum(axis=1), law.torque(PARAMETERS[name], dq), atol=1e-12
    )


def test_makkar_has_the_static_friction_the_paper_names():
    """Section 7.2: the static coefficient is about gamma_1 + gamma_4, reached at a small velocity."""
    velocity = np.linspace(0.0, 0.2, 2000)
    law = make_law("makkar")
    peak = max(law.torque(TABLE_I[:1], np.array([v]))[0] for v in velocity)
    assert peak == pytest.approx(0.7 + 0.6, rel=0.2)


def test_load_dependent_law_asks_for_the_load():
    with pytest.raises(ConfigError, match="load"):
        make_law("stribeck_load").torque(PARAMETERS["stribeck_load"], np.ones(2))


def test_unknown_law_names_the_known_ones():
    with pytest.raises(ConfigError, match="'coulomb_viscous', 'makkar'"):
        make_law("nope")
