"""Claims about Coulomb and viscous friction in the place of any law."""

from __future__ import annotations

import numpy as np
import pytest

from friction_estimator.laws import law_names, make_law
from friction_estimator.laws.fit_law import fit_coulomb_viscous

VELOCITY = np.linspace(-1.0, 1.0, 200)
NO_LOAD = np.zeros(VELOCITY.size)


def test_coulomb_and_viscous_friction_stays_what_it_is_to_the_bit() -> None:
    simple = fit_coulomb_viscous(make_law("coulomb_viscous"), np.array([0.1 + 0.2, 1.1]), VELOCITY, NO_LOAD)
    assert (simple.coulomb, simple.viscous, simple.offset) == (0.1 + 0.2, 1.1, 0.0)
    assert (simple.error, simple.lost) == (0.0, ())


def test_it_is_the_least_squares_fit_to_the_law() -> None:
    law, parameters = make_law("tanh_stribeck"), np.array([2.0, 1.5, 0.8, 0.05, 0.3, 200.0])
    simple = fit_coulomb_viscous(law, parameters, VELOCITY, NO_LOAD)
    torque = law.torque(np.tile(parameters, (VELOCITY.size, 1)), VELOCITY)

    def error(coulomb: float, viscous: float, offset: float) -> float:
        return float(np.sqrt(np.mean((torque - coulomb * np.sign(VELOCITY) - viscous * VELOCITY - offset) ** 2)))

    best = np.array([simple.coulomb, simple.viscous, simple.offset])
    assert simple.error == pytest.approx(error(*best))
    for step in 1e-3 * np.vstack((np.eye(3), -np.eye(3))):
        assert error(*(best + step)) > simple.error
    assert simple.offset == pytest.approx(0.3, abs=1e-9)
    assert [part.split(",")[0] for part in simple.lost] == ["the shape over velocity (Stribeck)", "the offset"]


def test_load_is_averaged_and_its_effect_is_told() -> None:
    load = np.tile([-20.0, -5.0, 5.0, 20.0], VELOCITY.size // 4)
    simple = fit_coulomb_viscous(make_law("load_quadrants"), np.array([2.0, 0.1, 2.0, 0.1, 3.0, 0.0]), VELOCITY, load)
    assert simple.coulomb == pytest.approx(2.0 + 0.1 * 12.5, abs=1e-3)
    assert simple.viscous == pytest.approx(3.0, abs=1e-3)
    assert simple.lost == ("the dependence on load and velocity, up to 0.75 N m",)


def test_a_load_that_goes_with_the_velocity_counts_as_it_does() -> None:
    """The motor of an empty joint carries its friction: under that load the law is the friction itself."""
    friction = 5.0 * np.sign(VELOCITY) + 2.0 * VELOCITY
    simple = fit_coulomb_viscous(
        make_law("load_quadrants"), np.array([0.0, 1.0, 9.0, 0.3, 0.0, 0.0]), VELOCITY, friction
    )
    assert (simple.coulomb, simple.viscous) == (pytest.approx(5.0), pytest.approx(2.0))
    assert simple.lost == ()


def test_a_difference_between_the_directions_is_told_with_its_size() -> None:
    simple = fit_coulomb_viscous(make_law("asymmetric"), np.array([2.0, 1.0, 2.0, 3.0]), VELOCITY, NO_LOAD)
    assert simple.viscous == pytest.approx(2.0)
    direct = 0.5 * (1.0 - 3.0) * np.abs(VELOCITY)  # the even part of the law
    assert simple.asymmetry == pytest.approx(np.abs(direct - direct.mean()).max())
    assert simple.shape < 1e-9


def test_friction_never_drives() -> None:
    """Stribeck friction that falls over the whole range would have a negative viscous part."""
    falling = np.array([0.0, 1.0, 2.0, 0.8, 0.0, 1e3])
    simple = fit_coulomb_viscous(make_law("tanh_stribeck"), falling, VELOCITY, NO_LOAD)
    assert simple.viscous == pytest.approx(0.0, abs=1e-6)
    assert simple.coulomb > 1.0


def test_one_direction_alone_has_no_offset() -> None:
    """Coulomb friction and an offset cannot be told apart there."""
    simple = fit_coulomb_viscous(
        make_law("tanh_stribeck"), np.array([2.0, 1.0, 0.0, 0.1, 0.5, 1e3]), VELOCITY[120:], NO_LOAD[120:]
    )
    assert simple.offset == 0.0
    assert (simple.coulomb, simple.viscous) == (pytest.approx(1.5), pytest.approx(2.0))


def test_laws_that_need_a_load_are_known() -> None:
    assert {name for name in law_names() if make_law(name).depends_on_load} == {
        name for name in law_names() if "load" in name
    }
