"""Claims about sensors that are checked against each other on a simulated walk: the wrong one is named."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from friction_estimator.config import Config
from friction_estimator.estimation.estimator import Estimator
from friction_estimator.io.robot import load_robot
from test.feeding import feed

pytest.importorskip("mujoco", reason="MuJoCo is not installed")

from friction_estimator.simulation import SimulationSample, Simulator, make_noise, make_scenario

ROBOT = load_robot("suralp")
Change = Callable[[SimulationSample], SimulationSample]


def recorded(scenario: str, duration: float, noise: str = "realistic") -> list[SimulationSample]:
    simulator = Simulator(ROBOT.config, ROBOT.urdf_xml, make_scenario(scenario, duration), make_noise(noise), seed=3)
    return [simulator.step() for _ in range(round(duration * 1000))]


@pytest.fixture(scope="module")
def walk() -> list[SimulationSample]:
    return recorded("walk", 8.0)


def config(noise: str = "realistic", period: float = 1e-3) -> Config:
    """With the cheapest observer: what is checked does not depend on it."""
    return replace(ROBOT.config, observer="momentum", sensors=make_noise(noise).datasheet(period))


def findings(samples: Sequence[SimulationSample], change: Change | None = None) -> tuple[str, ...]:
    estimator = Estimator(config(), ROBOT.urdf_xml)
    feed(estimator, samples if change is None else map(change, samples))
    return estimator.health.findings


def with_wrench(foot: int, change: Callable[[np.ndarray], np.ndarray]) -> Change:
    def changed(sample: SimulationSample) -> SimulationSample:
        wrenches = [replace(w, wrench=change(w.wrench)) if w.foot == foot else w for w in sample.wrenches]
        return replace(sample, wrenches=tuple(wrenches))

    return changed


def test_good_sensors_have_no_finding(walk):
    assert findings(walk) == ()


@pytest.mark.parametrize(("every", "rate"), [(10, ""), (40, "joint_states: 2[56] Hz"), (1000, "joint_states: 1 Hz")])
def test_a_rate_too_low_to_identify_friction_is_named_with_the_lowest_useful_one(walk, every, rate):
    estimator = Estimator(config(period=1e-3 * every), ROBOT.urdf_xml)
    feed(estimator, walk[::every])
    texts = [text for text in estimator.warnings() if "is too low" in text]
    assert len(texts) == bool(rate)
    assert not rate or re.search(f"{rate} is too low to identify friction; publish at 100 Hz", texts[0])


def test_a_slow_foot_sensor_is_named(walk):
    slow = [s if k % 50 == 0 else replace(s, wrenches=s.wrenches[:1]) for k, s in enumerate(walk)]
    (finding,) = findings(slow)
    assert re.match(r"r_foot/wrench: 2\d Hz is too low", finding)


def later(milliseconds: float, imu: bool) -> Change:
    """Stamps of the IMU, or of the right foot, this much too old."""

    def changed(sample: SimulationSample) -> SimulationSample:
        lag = round(1e6 * milliseconds)
        right = replace(sample.wrenches[1], stamp_ns=sample.wrenches[1].stamp_ns - lag)
        inertial = replace(sample.imu, stamp_ns=sample.imu.stamp_ns - lag)
        return replace(sample, imu=inertial) if imu else replace(sample, wrenches=(sample.wrenches[0], right))

    return changed


@pytest.mark.parametrize(("imu", "topic"), [(True, "imu/data"), (False, "r_foot/wrench")])
@pytest.mark.parametrize(
    ("lag", "text"),
    [
        (3.0, ""),
        (10.0, r"1[01]\.\d ms behind those of joint_states.* set synchronizer.max_wait above 0.01"),
        (5000.0, r"500\d\.\d ms behind those of joint_states.*: correct the stamps"),
        (-2000.0, r"1999|2000\.\d ms ahead of those of joint_states"),
    ],
)
def test_stamps_that_lag_are_measured_and_the_parameter_is_named(walk, imu, topic, lag, text):
    found = findings(walk[1000:3500], later(lag, imu))
    assert len(found) == bool(text) and all(re.match(f"{topic}: its stamps are .*({text})", one) for one in found)


def test_a_silent_sensor_has_no_lag(walk):
    assert findings([*walk[:1500], *(replace(s, wrenches=s.wrenches[:1]) for s in walk[1500:4000])]) == ()


def test_a_flipped_wrench_is_named_and_other_advice_waits_for_it(walk):
    estimator = Estimator(ROBOT.config, ROBOT.urdf_xml)
    flip = with_wrench(0, np.negative)
    for sample in walk[:4000]:
        feed(estimator, [flip(sample)])
        if sample.joints.stamp_ns > 1_500_000_000:  # it does not flicker with the steps
            (finding,) = estimator.health.findings
            assert finding.startswith("l_foot/wrench") and finding.endswith("set feet.l_foot.flip")
    assert [event.code for event in estimator.health.events] == ["sensor"]
    assert not any("check" in text for text in estimator.warnings())
    assert any("correct the sensors first" in text for text in estimator.warnings())


def test_a_wrench_with_the_right_sign_again_is_cleared(walk):
    flip = with_wrench(0, np.negative)
    first = [flip(sample) for sample in walk[:1200]]
    assert findings(first) != () and findings([*first, *walk[1200:]]) == ()
