"""The method from motions to a result: per joint, validated by segment, with the lateness of the observer taken out."""

import re
from dataclasses import replace

import numpy as np
import pytest

from friction_estimator.errors import ConfigError, InputError
from friction_estimator.identification.curves.fit import CurveOptions
from friction_estimator.identification.curves.friction_curve import FrictionCurveOptions, identify_friction_curve
from friction_estimator.laws.identified import parameters_sigma
from test.identification.curves import KNEE, PERIOD, as_motion, coloured, curve

OPTIONS = FrictionCurveOptions(fit=CurveOptions(starts=16))
ANKLE = np.array([0.3, 0.5])


def identified(motions, law, options):
    return identify_friction_curve(motions, replace(options, law=law))


@pytest.fixture(scope="module")
def curves():
    return {
        "knee": curve("tanh_stribeck", KNEE, 2.0, 0.02, 1),
        "ankle": curve("coulomb_viscous", ANKLE, 1.0, 0.02, 2),
    }


@pytest.fixture(scope="module")
def result(curves):
    return identified([as_motion(curves)], "tanh_stribeck", replace(OPTIONS, joint_laws=("ankle=coulomb_viscous",)))


def test_every_joint_gets_its_own_law_and_its_parameters_with_sigma(result):
    friction = result.friction
    assert friction.joint_names == ("knee", "ankle")
    assert friction.law_names == ("tanh_stribeck", "coulomb_viscous")
    np.testing.assert_array_less(np.abs(friction.values[0] - KNEE), 4.0 * parameters_sigma(friction)[0])
    np.testing.assert_array_less(np.abs(friction.values[1, :2] - ANKLE), 4.0 * parameters_sigma(friction)[1, :2])
    assert not friction.values[1, 2:].any()  # padding
    assert result.parameters.names[:2] == ("knee/viscous", "knee/coulomb")
    assert result.parameters.units[5:7] == ("s/rad", "N m")
    np.testing.assert_array_equal(result.parameters.sigma[:6], parameters_sigma(friction)[0])
    assert result.parameters.identifiable.all()


def test_held_out_errors_stand_beside_predict_zero(result, curves):
    for score, noise in zip(result.scores, (0.02, 0.02), strict=True):
        samples = curves[score.joint]
        fastest = np.argsort(-np.abs(samples.velocity))[: score.samples]  # slower, it may be at rest
        assert score.torque_rms == pytest.approx(np.sqrt(np.mean(samples.friction[fastest] ** 2)))
        assert score.samples > 0.97 * samples.velocity.size
        assert np.isnan(score.rigid_body_error)
        assert noise * 0.9 < score.fit_error <= score.held_out_error < noise * 1.3
    assert any(
        re.match("the friction is predicted with an error of .*1[.].*knee", sentence) for sentence in result.verdicts
    )


def test_friction_that_does_not_depend_on_velocity_is_called_useless(curves):
    noise = replace(curves["knee"], friction=coloured(np.random.default_rng(3), curves["knee"].velocity.size))
    result = identified([as_motion({"knee": noise, "ankle": curves["ankle"]})], "coulomb_viscous", OPTIONS)
    assert (
        result.verdicts[0].startswith("knee: no better than predicting zero")
        and "the friction is predicted" in result.verdicts[0]
    )
    assert result.scores[0].held_out_error > 0.9 * result.scores[0].torque_rms


def test_folds_are_stretches_of_time_not_shuffled_samples(curves):
    """Friction that wanders looks well explained to folds that are shuffled."""
    samples = curves["knee"]
    wander = np.sign(np.sin(np.arange(samples.velocity.size) * PERIOD * 2.0 * np.pi / 8.0))
    wandering = replace(samples, friction=samples.friction * (1.0 + 0.5 * wander))
    score = identified([as_motion({"knee": wandering})], "tanh_stribeck", OPTIONS).scores[0]
    assert score.held_out_error > 1.1 * score.fit_error


@pytest.mark.parametrize("late", [0, 60])
def test_the_lateness_of_an_observer_is_found(curves, late):
    samples = {"knee": curve("tanh_stribeck", KNEE, 2.0, 0.02)}
    result = identified([as_motion(samples, late)], "tanh_stribeck", OPTIONS)
    sentence = next(choice for choice in result.provenance.choices if choice.startswith("friction is taken"))
    found = float(sentence.split(" taken as ")[1].split(" s late")[0]) if "s late:" in sentence else 0.0
    assert found == pytest.approx(late * PERIOD, abs=0.007)
    np.testing.assert_allclose(result.friction.values[0], KNEE, rtol=0.12)


def test_a_given_lateness_is_kept_and_gaps_are_not_crossed(curves):
    motion = as_motion({"knee": curves["knee"]}, 60)
    half = motion.time.size // 2
    gap = replace(motion, time=np.concatenate((motion.time[:half], motion.time[half:] + 3.0)))
    options = replace(OPTIONS, delay=0.12)
    whole, cut = (identified([one], "tanh_stribeck", options) for one in (motion, gap))
    assert whole.scores[0].samples - cut.scores[0].samples == 60
    assert "friction is taken as 0.12 s late, as given" in cut.provenance.choices


def test_dead_zone_and_uncertain_friction_are_left_out(curves):
    motion = as_motion({"knee": curves["knee"]})
    sigma = np.where(np.arange(motion.time.size) % 2, 0.1, 5.0)[:, None]
    motion = replace(motion, inputs={**motion.inputs, "friction_sigma": sigma})
    options = replace(OPTIONS, dead_zone=0.05, max_sigma=1.0, delay=0.0)
    result = identified([motion], "coulomb_viscous", options)
    fast = np.abs(curves["knee"].velocity) >= 0.05
    assert result.scores[0].samples == np.count_nonzero(fast[1::2])
    assert not result.samples[0].used.all()
    np.testing.assert_array_equal(result.samples[0].used, np.abs(result.samples[0].velocity) >= 0.05)


def test_a_joint_that_mostly_rests_shows_the_friction_of_its_motion(curves):
    """Its drive reads a step of its velocity at rest, and friction holds it with any torque up to breaking away."""
    rng, samples = np.random.default_rng(5), curves["ankle"]
    rests = np.arange(samples.velocity.size) * PERIOD % 4.0 < 3.0
    held = ANKLE[1] * coloured(rng, rests.size, 200).clip(-1.0, 1.0)
    quantised = 0.01 * (np.floor(samples.velocity / 0.01) + 0.5)
    resting = replace(
        samples,
        velocity=np.where(rests, -0.005, quantised),
        friction=np.where(rests, held, samples.friction),
    )
    result = identified([as_motion({"ankle": resting})], "coulomb_viscous", OPTIONS)
    np.testing.assert_allclose(result.friction.values[0], ANKLE, atol=0.02)
    assert not any(
        choice in sentence for sentence in result.verdicts for choice in ("depends on the velocity", "no better")
    )


def test_several_experiments_count_together_and_are_named(curves):
    first, second = as_motion({"knee": curve("tanh_stribeck", KNEE, 0.3, 0.02)}), as_motion({"knee": curves["knee"]})
    alone = identified([first], "tanh_stribeck", OPTIONS)
    both = identified([first, replace(second, name="run", digest="d2")], "tanh_stribeck", OPTIONS)
    assert any("never left the Stribeck region" in sentence for sentence in alone.verdicts)
    assert not alone.parameters.identifiable[0] and both.parameters.identifiable[0]
    assert both.provenance.data == (("walk", "d1"), ("run", "d2"))


def test_a_joint_without_measured_friction_is_left_out_and_named(curves):
    motion = as_motion(curves)
    motion.inputs["friction"][:, 1] = np.nan
    result = identified([motion], "tanh_stribeck", OPTIONS)
    assert result.friction.joint_names == ("knee",)
    assert any(choice.startswith("ankle is left out: 0 samples") for choice in result.provenance.choices)


def test_bad_requests_get_one_clear_error(curves):
    motion = as_motion(curves)
    with pytest.raises(InputError, match=r"no measured friction.*topic joint_friction.*friction/JOINT.*'pwm'"):
        identified([replace(motion, inputs={"pwm": motion.velocity})], "tanh_stribeck", OPTIONS)
    with pytest.raises(ConfigError, match="unknown friction law 'lugre'"):
        identified([motion], "lugre", OPTIONS)
    with pytest.raises(InputError, match="no data"):
        identified([], "makkar", OPTIONS)
    with pytest.raises(InputError, match="has the joints ankle, knee"):
        identified([motion, replace(motion, joint_names=("ankle", "knee"))], "makkar", OPTIONS)
    motion.inputs["friction"][:] = np.nan
    with pytest.raises(InputError, match="no joint has enough measured friction.*knee.*ankle"):
        identified([motion], "makkar", OPTIONS)


def test_the_law_of_every_joint_is_the_simplest_of_those_that_predict_best(curves):
    both = {"knee": curve("asymmetric", (0.7, 0.9, 0.5, 0.3), 1.0, 0.02, 3), "ankle": curves["ankle"]}
    options = replace(OPTIONS, delay=0.0, offset=False)
    result = identified([as_motion(both)], "auto", options)
    assert result.friction.law_names == ("asymmetric", "coulomb_viscous")
    compared = {one.settings for one in result.candidates if one.decision == "ankle/law"}
    assert {"coulomb_viscous", "tanh_stribeck", "load_quadrants"} <= compared
    kept = identified([as_motion(both)], "auto", replace(options, joint_laws=("knee=coulomb_viscous",)))
    assert kept.friction.law_names == ("coulomb_viscous", "coulomb_viscous")


def test_friction_of_another_shape_than_its_law_is_named():
    motion = as_motion({"knee": curve("six_slope", (0.0, 1.5, 0.0, 0.0, -1.0, 0.0, 0.1), 1.0, 0.02)})
    plain, flexible = (identified([motion], law, OPTIONS) for law in ("coulomb_viscous", "six_slope"))
    assert any(text.startswith("knee: the law 'coulomb_viscous' leaves") for text in plain.verdicts)
    assert any("predicts unseen data better than 'coulomb_viscous'" in text for text in plain.verdicts)
    assert not any("depends on the velocity" in text for text in flexible.verdicts)


def test_friction_that_is_taken_as_late_is_a_finding_with_its_meaning(curves):
    motion = as_motion({"knee": curves["ankle"]}, late=50)
    (found,) = [text for text in identified([motion], "coulomb_viscous", OPTIONS).verdicts if "late" in text]
    assert re.match(r"knee: the measured friction, or torque, is (9|10)\d? ms late .* Check the stamps, or give", found)
    given = identified([motion], "coulomb_viscous", replace(OPTIONS, delay=0.1))
    assert not any("late" in text for text in given.verdicts)


@pytest.mark.parametrize("zero", [-0.2, 0.1])
def test_in_one_direction_the_zero_of_measured_friction_is_in_sigma(curves, zero):
    samples = curves["ankle"]
    forward = np.abs(samples.velocity)
    friction = np.where(samples.velocity < 0.0, -samples.friction, samples.friction) + zero
    motion = as_motion({"ankle": replace(samples, velocity=forward, friction=friction)})
    result = identified([motion], "coulomb_viscous", replace(OPTIONS, delay=0.0))
    assert abs(result.friction.values[0, 0] - ANKLE[0]) < 2.0 * parameters_sigma(result.friction)[0, 0]
    assert any("move in both directions, at several speeds" in text for text in result.verdicts)
