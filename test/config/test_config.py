"""Claims about the configuration: what is wrong is named, with the valid choices."""

from __future__ import annotations

import dataclasses

import pytest

from friction_estimator.baselines import base_state
from friction_estimator.config import Config, config_from_parameters, parameter_fields
from friction_estimator.errors import ConfigError

FEET = {"feet.names": ["l", "r"], "feet.l.frame": "l_sole", "feet.r.frame": "r_sole"}


def test_table_ii_is_the_default():
    config = config_from_parameters({**FEET, "observer": "fbse"})
    rls = config.identifier
    assert (base_state.PROCESS_NOISE, base_state.MEASUREMENT_NOISE, base_state.INITIAL_COVARIANCE) == (1.0, 1e-4, 10.0)
    assert (base_state.MEASUREMENT_WINDOW, base_state.PROCESS_WINDOW) == (1000, 5000)
    assert (rls.initial_covariance, rls.forgetting, config.friction_law) == (10.0, 1.0, "coulomb_viscous")


def test_every_field_is_described_and_its_default_is_valid():
    fields = parameter_fields(("l", "r"))
    assert len({item.name for item in fields}) == len(fields) > 40
    for item in fields:
        assert item.range.description, item.name
    defaults = {item.name: item.default for item in fields if item.name not in ("feet.names", *FEET)}
    assert config_from_parameters({**FEET, **defaults}) == config_from_parameters(FEET)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"momentum.gian": 20.0}, r"'momentum.gian' \(did you mean 'momentum.gain'\?\)"),
        ({"feet.l.flipp": True}, r"'feet.l.flipp' \(did you mean 'feet.l.flip'\?\)"),
        ({"feet.x.flip": True}, r"unknown parameter 'feet.x.flip'"),
        ({"momentum.gain": "fast"}, r"momentum.gain = 'fast' has the wrong type: expected a number"),
        ({"momentum.gain": True}, r"wrong type"),
        ({"momentum.gain": -1.0}, r"momentum.gain = -1.0 rad/s is out of range \[0.1, 10000\] rad/s"),
        ({"momentum.gain": float("nan")}, r"out of range"),
        ({"observer": "fsbe"}, r"'constrained', 'fbse', 'kalman', 'momentum'"),
        ({"constrained.window": 50}, r"constrained.window = 50 is even.*odd"),
        ({"constrained.order": 1}, r"constrained.order = 1 must be from 2 \(constrained.signal: position\) to 50"),
        ({"feet.names": "l"}, r"feet.names = 'l' has the wrong type: expected a list of names"),
        ({"feet.names": ["l", "r", "l"]}, r"has a name twice"),
        ({"feet.l.frame": ""}, r"feet.l.frame is missing"),
        ({"feet.r.frame": "l_sole"}, r"share a frame: l_sole, l_sole"),
        ({"feet.r.topic": "l/wrench"}, r"share a topic: l/wrench"),
        ({"feet.l.phase": "left\n"}, r"feet.l.phase is 'left\\n'; names are one line"),
        ({"feet.l.topic": "l wrench"}, r"feet.l.topic = 'l wrench' is no name of a ROS topic: words of a-z"),
        ({"imu.topic": ""}, r"imu.topic = '' is no name of a ROS topic"),
        ({"imu.topic": "imu//data"}, r"imu.topic = 'imu//data' is no name"),
        ({"imu.topic": "imu/"}, r"imu.topic = 'imu/' is no name"),
        ({"imu.topic": "a" * 201}, r"imu.topic = .* is no name of a ROS topic"),
        ({"output.joint_states_topic": "1/joints"}, r"output.joint_states_topic = '1/joints' is no name"),
        ({"compensation.desired_topic": "befehl ü"}, r"compensation.desired_topic = 'befehl ü' is no name"),
        ({"robot.fixed_base": True, "observer": "fbse"}, r"needs a floating base.*momentum"),
    ],
)
def test_an_error_names_the_wrong_parameter_and_what_is_valid(wrong, message):
    with pytest.raises(ConfigError, match=message):
        config_from_parameters({**FEET, **wrong})


@pytest.mark.parametrize("name", ["", "left foot", "l/foot", "1", "füße", "l\n", "l" * 101])
def test_a_foot_name_that_topics_and_parameters_cannot_contain_is_refused(name):
    with pytest.raises(ConfigError, match="feet.names has the name .*: a foot has one word of a-z"):
        config_from_parameters({"feet.names": [name]})


@pytest.mark.parametrize("observer", ["fbse", "constrained"])
def test_observers_that_need_feet_are_refused_without_and_momentum_is_not(observer):
    with pytest.raises(ConfigError, match="at least one foot"):
        config_from_parameters({"observer": observer})
    assert config_from_parameters({"observer": "momentum"}).feet == ()


def test_whole_numbers_are_fine_where_numbers_are_wanted():
    assert config_from_parameters({**FEET, "momentum.gain": 20}).momentum.gain == 20.0


def test_configuration_cannot_be_changed_by_accident():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Config(observer="momentum").observer = "fbse"
