"""What the data cannot show is said in words, and what it shows is not doubted."""

import numpy as np
import pytest

from friction_estimator.identification.curve_fit import CurveOptions, fit_curve, parameter_identifiability
from friction_estimator.laws import make_law
from test.identification.curves import KNEE, curve

OPTIONS = CurveOptions(starts=16)


def judged(law, parameters, top_speed, select=lambda samples: samples, noise=0.01):
    samples = select(curve(law, np.array(parameters, dtype=float), top_speed, noise))
    return parameter_identifiability("knee", fit_curve(make_law(law), samples, OPTIONS), samples)


def test_a_joint_that_moves_fast_and_slow_shows_all_six_parameters():
    result = judged("tanh_stribeck", KNEE, 2.0)
    assert result.identifiable.all() and result.reasons == ()


@pytest.mark.parametrize("top_speed", [0.1, 0.2, 0.35])
def test_a_joint_that_never_left_the_stribeck_region_does_not_show_viscous_friction(top_speed):
    result = judged("tanh_stribeck", KNEE, top_speed)
    assert not result.identifiable[0]
    assert len(result.reasons) == 1
    assert result.reasons[0].startswith(f"knee never left the Stribeck region (|dq| < {top_speed:.2g}")
    assert "viscous" in result.reasons[0] and result.reasons[0].endswith("not identifiable")


def test_offset_is_known_even_in_the_stribeck_region():
    assert judged("tanh_stribeck", KNEE, 0.2).identifiable[4]


def test_a_joint_that_moved_one_way_only_does_not_show_the_friction_of_the_other_way():
    result = judged("asymmetric", (0.7, 0.9, 0.5, 0.6), 1.0, lambda samples: samples.select(samples.velocity > 0.0))
    assert result.identifiable.tolist() == [True, True, False, False]
    assert result.reasons == (
        "knee moved in one direction only, so coulomb_negative and viscous_negative are not identifiable",
    )


def test_a_viscous_friction_of_zero_is_known_to_be_none():
    assert judged("coulomb_viscous", (1.0, 0.0), 1.0).identifiable.all()


def test_a_shape_without_any_torque_is_not_shown():
    result = judged("tanh_stribeck", (0.2, 1.0, 0.0, 0.2, 0.0, 40.0), 2.0)
    assert not result.identifiable[3]
    assert result.identifiable[[0, 1, 4, 5]].all()
    assert any("stribeck_velocity" in reason for reason in result.reasons)


def test_equal_tangents_can_be_exchanged_and_that_is_said():
    """g4 tanh(100 dq) may as well be one more of the first tangent and one less of a second one."""
    result = judged("makkar", (0.7, 100.0, 10.0, 0.6, 100.0, 0.9), 2.0)
    assert not result.identifiable[[1, 4]].any()
    assert result.identifiable[5]
    assert any("gamma_2" in reason for reason in result.reasons)
