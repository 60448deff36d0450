"""Claims about sensors that are checked against each other on a simulated walk: the wrong one is named."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest

from friction_estimator.config import Config
from friction_estimator.estimation.estimator import Estimator
from friction_estimator.io.robot import load_robot
from friction_estimator.types import ImuSample, JointSample, WrenchSample
from test.feeding import feed

pytest.importorskip("mujoco", reason="MuJoCo is not installed")

from friction_estimator.simulation import SimulationSample, Simulator, make_noise, make_scenario

ROBOT = load_robot("suralp")
KNEE = 3
RATE, HIGH_RATE = 250, 500
"""Of all sensors [Hz]: the lower one, but where milliseconds or the motion of a pushed robot count."""
Change = Callable[[SimulationSample], SimulationSample]


def recorded(scenario: str, duration: float, noise: str = "realistic") -> list[SimulationSample]:
    simulator = Simulator(ROBOT.config, ROBOT.urdf_xml, make_scenario(scenario, duration), make_noise(noise), seed=3)
    return [simulator.step() for _ in range(round(duration * 1000))][:: 1000 // HIGH_RATE]


def between(samples: Sequence[SimulationSample], start: float, end: float) -> Sequence[SimulationSample]:
    """Samples between two times [s]."""
    rate = 1e9 / (samples[1].joints.stamp_ns - samples[0].joints.stamp_ns)
    return samples[round(start * rate) : round(end * rate)]


@pytest.fixture(scope="module")
def fast_walk() -> list[SimulationSample]:
    return recorded("walk", 8.0)


@pytest.fixture(scope="module")
def walk(fast_walk: list[SimulationSample]) -> list[SimulationSample]:
    return fast_walk[:: HIGH_RATE // RATE]


@pytest.fixture(scope="module")
def stand() -> list[SimulationSample]:
    return recorded("stand", 2.3)[:: HIGH_RATE // RATE]


def config(noise: str = "realistic", period: float = 1.0 / RATE) -> Config:
    """With the cheapest observer: what is checked does not depend on it."""
    return replace(ROBOT.config, observer="momentum", sensors=make_noise(noise).datasheet(period))


def findings(samples: Sequence[SimulationSample], change: Change | None = None, rate: float = RATE) -> tuple[str, ...]:
    estimator = Estimator(config(period=1.0 / rate), ROBOT.urdf_xml)
    feed(estimator, samples if change is None else map(change, samples))
    return estimator.health.findings


def with_wrench(foot: int, change: Callable[[np.ndarray], np.ndarray]) -> Change:
    def changed(sample: SimulationSample) -> SimulationSample:
        wrenches = [replace(w, wrench=change(w.wrench)) if w.foot == foot else w for w in sample.wrenches]
        return replace(sample, wrenches=tuple(wrenches))

    return changed


def test_good_sensors_have_no_finding(walk):
    assert findings(walk) == ()


@pytest.mark.parametrize(("rate", "text"), [(100, ""), (25, "joint_states: 2[56] Hz"), (1, "joint_states: 1 Hz")])
def test_a_rate_too_low_to_identify_friction_is_named_with_the_lowest_useful_one(fast_walk, rate, text):
    estimator = Estimator(config(period=1.0 / rate), ROBOT.urdf_xml)
    feed(estimator, fast_walk[:: HIGH_RATE // rate])
    texts = [text for text in estimator.warnings() if "is too low" in text]
    assert len(texts) == bool(text)
    assert not text or re.search(f"{text} is too low to identify friction; publish at 100 Hz", texts[0])


def test_a_slow_foot_sensor_is_named(walk):
    slow = [s if k % (RATE // 20) == 0 else replace(s, wrenches=s.wrenches[:1]) for k, s in enumerate(walk)]
    (finding,) = findings(between(slow, 0.0, 2.3))
    assert re.match(r"r_foot/wrench: 2\d Hz is too low", finding)


def test_a_clock_that_begins_below_zero_is_no_low_rate(walk):
    def early(one: SimulationSample) -> SimulationSample:
        joints, imu, *wrenches = (
            replace(reading, stamp_ns=reading.stamp_ns - 200_000_000)
            for reading in (one.joints, one.imu, *one.wrenches)
        )
        return replace(one, joints=joints, imu=imu, wrenches=tuple(wrenches))

    estimator = Estimator(config(), ROBOT.urdf_xml)
    feed(estimator, map(early, walk[:RATE]))
    assert not estimator.health.events


def test_a_pause_is_no_low_rate(walk):
    assert findings([*between(walk, 0.0, 1.5), *between(walk, 3.0, 5.5)]) == ()


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
        (12.0, r"1[2-4]\.\d ms behind those of joint_states.* set synchronizer.max_wait above 0.01"),
        (5000.0, r"500\d\.\d ms behind those of joint_states.*: correct the stamps"),
        (-2000.0, r"(1998|1999|2000)\.\d ms ahead of those of joint_states"),
    ],
)
def test_stamps_that_lag_are_measured_and_the_parameter_is_named(fast_walk, imu, topic, lag, text):
    found = findings(between(fast_walk, 1.0, 3.5), later(lag, imu), HIGH_RATE)
    assert len(found) == bool(text) and all(re.match(f"{topic}: its stamps are .*({text})", one) for one in found)


@pytest.mark.parametrize("topic", ["imu/data", "r_foot/wrench"])
@pytest.mark.parametrize("kept", [0, 1_500_000_000], ids=["never set", "standing"])
def test_stamps_that_do_not_advance_are_named_as_stamps_and_not_as_silence(walk, topic, kept):
    """The joint states are never called late."""

    def stop(sample: SimulationSample) -> SimulationSample:
        def held(one):
            return replace(one, stamp_ns=min(one.stamp_ns, kept))

        if topic == "imu/data":
            return replace(sample, imu=held(sample.imu))
        return replace(sample, wrenches=(sample.wrenches[0], held(sample.wrenches[1])))

    estimator = Estimator(config(), ROBOT.urdf_xml)
    feed(estimator, map(stop, between(walk, 0.0, 3.5)))
    (finding,) = estimator.health.findings
    assert finding.startswith(f"{topic}: its stamps do not advance although readings arrive")
    assert estimator.health.late == 0


@pytest.mark.parametrize("silent", ["imu/data", "r_foot/wrench"])
@pytest.mark.parametrize("first", [0.0, 1.5], ids=["from the start", "later"])
def test_a_sensor_that_falls_silent_is_named_without_a_lag_and_cleared_when_it_comes_back(walk, silent, first):
    estimator, foot = Estimator(config(), ROBOT.urdf_xml), 1 if "foot" in silent else 5
    feed(estimator, between(walk, 0.0, first))
    feed(estimator, between(walk, first, 3.5), () if foot == 1 else range(4000), (foot, range(4000)))
    (finding,) = estimator.health.findings
    assert finding.startswith(f"{silent}: no usable reading arrives: check that the driver")
    assert any(finding in text for text in estimator.warnings())
    lacking = [silent in text for text in estimator.invalid_reasons()]
    assert lacking == [foot == 5 or name.startswith("r_") for name in estimator.joint_names]
    estimates = feed(estimator, between(walk, 3.5, 6.5))
    np.testing.assert_array_equal(estimates[0].valid, ~np.array(lacking) & estimates[0].law.known)
    assert estimator.health.findings == () and not any(silent in text for text in estimator.invalid_reasons())


def test_joints_that_depend_on_a_wrong_sensor_are_in_doubt_until_it_is_right(walk):
    estimator = Estimator(config(), ROBOT.urdf_xml)
    feed(estimator, map(with_wrench(0, np.negative), between(walk, 0.0, 2.5)))
    named = [
        name for name, why in zip(estimator.joint_names, estimator.invalid_reasons(), strict=True) if "l_foot" in why
    ]
    assert named == [name for name in estimator.joint_names if name.startswith("l_")]
    estimates = feed(estimator, between(walk, 2.5, 6.5))
    assert not estimates[0].valid[:6].any() and not any("l_foot" in why for why in estimator.invalid_reasons())


def test_a_finding_names_every_joint_that_it_was_true_of(walk):
    """Joints show the same error at different times."""
    estimator = Estimator(config(), ROBOT.urdf_xml)
    zero = np.array(["yaw" not in name for name in estimator.joint_names])

    def without_most_efforts(sample: SimulationSample) -> SimulationSample:
        joints = replace(sample.joints, effort=np.where(zero, 0.0, sample.joints.effort))
        return replace(sample, joints=joints)

    feed(estimator, map(without_most_efforts, between(walk, 0.0, 6.5)))
    text = " ".join(estimator.health.findings)
    assert [
        name for name, missing in zip(estimator.joint_names, zero, strict=True) if missing and name not in text
    ] == []


def test_a_flipped_wrench_is_named_and_other_advice_waits_for_it(walk):
    estimator = Estimator(config(), ROBOT.urdf_xml)
    flip = with_wrench(0, np.negative)
    for sample in between(walk, 0.0, 5.0):
        feed(estimator, [flip(sample)])
        if sample.joints.stamp_ns > 1_500_000_000:  # it does not flicker with the steps
            (finding,) = estimator.health.findings
            assert finding.startswith("l_foot/wrench") and finding.endswith("set feet.l_foot.flip")
    assert [event.code for event in estimator.health.events] == ["sensor"]
    assert not any("check" in text for text in estimator.warnings())
    assert any("correct the sensors first" in text for text in estimator.warnings())


FEET_OF_WRONG_WRENCHES = [(0,), (1,), (0, 1)]


@pytest.mark.parametrize("feet", FEET_OF_WRONG_WRENCHES)
@pytest.mark.parametrize("share", [0.4, 0.7, 1.0])
def test_wrenches_that_lack_a_constant_force_are_never_called_turned_or_flipped(walk, feet, share):
    """Those point down, too, but in the air: where they were set to zero under this share of the weight of 1080 N."""
    force = share / len(feet) * np.array([0.0, 0.03, 1.0, 0.01, -0.02, 0.0]) * 1080.0
    estimator, found = Estimator(config(), ROBOT.urdf_xml), set[str]()
    for sample in between(walk, 0.0, 6.0):
        for foot in feet:
            sample = with_wrench(foot, lambda wrench: wrench - force)(sample)
        feed(estimator, [sample])
        found |= {text.split(" N: ")[0].split(" (")[0] for text in estimator.health.findings}
    names = [f"{estimator.foot_names[foot]}" for foot in feet]
    assert found == {f"{name}/wrench: the foot sensor {name!r} has an offset of" for name in names}


@pytest.mark.parametrize("feet", FEET_OF_WRONG_WRENCHES)
def test_flipped_wrenches_are_all_named_and_have_no_offset(walk, stand, feet):
    for samples in (between(walk, 0.0, 4.0), stand):
        estimator = Estimator(config(), ROBOT.urdf_xml)
        for sample in samples:
            for foot in feet:
                sample = with_wrench(foot, np.negative)(sample)
            feed(estimator, [sample])
        found = estimator.health.findings
        assert [text.split(".")[-2] for text in found] == [estimator.foot_names[foot] for foot in feet]
        assert all(text.endswith(".flip") for text in found)


def test_a_wrench_with_the_right_sign_again_is_cleared(walk):
    flip = with_wrench(0, np.negative)
    first = [flip(sample) for sample in between(walk, 0.0, 1.2)]
    assert findings(first) != () and findings([*first, *walk[round(1.2 * RATE) :]]) == ()


def turned(axis: int, degrees: float) -> np.ndarray:
    return pin.exp3(np.radians(degrees) * np.eye(3)[axis])


def with_imu(rotation: np.ndarray, rate: float = 1.0, force: float = 1.0) -> Change:
    def changed(sample: SimulationSample) -> SimulationSample:
        imu = sample.imu
        readings = {
            "angular_velocity": rate * rotation @ imu.angular_velocity,
            "specific_force": force * rotation @ imu.specific_force,
        }
        return replace(sample, imu=replace(imu, **readings))

    return changed


def with_joints(field: str, joint: int, change: Callable[[float], float]) -> Change:
    def changed(sample: SimulationSample) -> SimulationSample:
        values = getattr(sample.joints, field).copy()
        values[joint] = change(values[joint])
        return replace(sample, joints=replace(sample.joints, **{field: values}))

    return changed


WRONG: dict[str, tuple[Change, str]] = {
    "IMU turned about x": (with_imu(turned(0, 90.0)), "imu/data: .*turned by 90 degrees against the soles.*imu.frame"),
    "IMU turned about z": (
        with_imu(turned(2, 90.0)),
        r"imu/data: .*turned by (8[89]|9[0-2]) degrees about the vertical.*imu.frame",
    ),
    "IMU in g": (
        with_imu(np.eye(3), force=1.0 / 9.81),
        r"imu/data: the mean specific force is (1|0\.99\d*) m/s.*is it in g",
    ),
    "gravity is removed": (
        lambda s: replace(s, imu=replace(s.imu, specific_force=s.imu.specific_force - [0.0, 0.0, 9.81])),
        "imu/data: .*is gravity removed",
    ),
    "accelerometer with the other sign": (with_imu(np.eye(3), force=-1.0), "imu/data: .*points down.*change its sign"),
    "gyroscope in degrees": (with_imu(np.eye(3), rate=180.0 / np.pi), r"imu/data: .*5\d times .*degrees per second"),
    "gyroscope with the other sign": (
        with_imu(np.eye(3), rate=-1.0),
        "imu/data: .*opposite to that of the standing",
    ),
    "wrench in kN": (with_wrench(1, lambda w: 1e-3 * w), "r_foot/wrench: .*'r_foot' reads 0.0009?.*is it in kN"),
    "wrench twice as large": (with_wrench(0, lambda w: 2.0 * w), "l_foot/wrench: .*'l_foot' reads 2 times the force"),
    "wrench is zero": (with_wrench(0, np.zeros_like), "l_foot/wrench: .*'l_foot' reads nothing while"),
    "wrench turned": (
        with_wrench(0, lambda w: np.concatenate((turned(0, 90.0) @ w[:3], turned(0, 90.0) @ w[3:]))),
        "l_foot/wrench: .*'l_foot' is turned by .* degrees against the sole.*feet.l_foot.frame",
    ),
    "torque with the other sign": (
        with_joints("effort", KNEE, np.negative),
        "joint_states: the effort of joint 'l_knee' has the opposite sign",
    ),
    "torque in another unit": (
        with_joints("effort", KNEE, lambda effort: 10.0 * effort),
        "joint_states: the effort of joint 'l_knee' is .* times the torque",
    ),
    "moments about another point": (
        with_wrench(0, lambda w: np.concatenate((w[:3], w[3:] - np.cross([0.03, -0.02, 0.0], w[:3])))),
        "l_foot/wrench: .*moments about a point (29|30|31) mm along x and -(19|20|21) mm along y of feet.l_foot.frame",
    ),
    "foot sensor set to zero while the robot stands": (
        with_wrench(1, lambda w: w - [0.0, 10.0, 500.0, 5.0, -3.0, 0.0]),
        r"r_foot/wrench: .*an offset of \(-?\d, -\d+, -(4[89]|5[01])\d\) N: .*with the foot in the air",
    ),
    "velocity with the other sign": (
        with_joints("velocity", KNEE, np.negative),
        "joint_states: the velocity of joint 'l_knee' has the opposite sign",
    ),
    "velocity in another unit": (
        with_joints("velocity", KNEE, lambda velocity: 10.0 * velocity),
        "joint_states: the position of joint 'l_knee' changes 0.1 times as fast as its velocity",
    ),
}


@pytest.mark.parametrize("kind", WRONG)
def test_units_signs_and_frames_are_named_by_topic_cause_and_parameter(walk, kind):
    change, text = WRONG[kind]
    (finding,) = findings(between(walk, 0.0, 2.3), change)
    assert re.match(text, finding)


@pytest.mark.parametrize("kind", ["IMU turned about x", "IMU in g", "wrench twice as large", "wrench turned"])
def test_what_a_standing_robot_shows_is_named_before_it_walks(stand, kind):
    change, text = WRONG[kind]
    (finding,) = findings(stand, change)
    assert re.match(text, finding)


@pytest.mark.parametrize(
    "kind", ["IMU turned about z", "gyroscope in degrees", "wrench turned", "torque in another unit"]
)
def test_a_sensor_that_is_right_again_is_cleared_within_five_seconds(walk, kind):
    """Also where four blocks are needed to find the error, as for the heading of the IMU."""
    change, _ = WRONG[kind]
    estimator = Estimator(config(), ROBOT.urdf_xml)
    feed(estimator, map(change, between(walk, 0.0, 3.4)))
    assert len(estimator.health.findings) == 1
    feed(estimator, walk[round(3.4 * RATE) :])
    assert estimator.health.findings == () and len(estimator.health.events) == 1


def test_an_error_that_comes_after_the_clock_has_jumped_back_is_found(walk):
    """By the Kalman filters, too, which go back to what they had learned before the error."""
    estimator = Estimator(replace(config(), observer="kalman"), ROBOT.urdf_xml)
    feed(estimator, between(walk, 2.0, 4.5))
    feed(estimator, map(with_wrench(0, np.negative), between(walk, 0.0, 1.5)))
    assert any("set feet.l_foot.flip" in text for text in estimator.health.findings)


def keeps(kind: str, field: str, joint: int | None = None, foot: int = 0) -> Change:
    """A sensor that keeps the reading that it had at two seconds."""
    kept: list[np.ndarray] = []

    def changed(sample: SimulationSample) -> SimulationSample:
        source = sample.wrenches[foot] if kind == "wrenches" else getattr(sample, kind)
        value = getattr(source, field).copy()
        if source.stamp_ns <= 2_000_000_000:
            kept[:] = [value]
            return sample
        if joint is None:
            value = kept[0]
        else:
            value[joint] = kept[0][joint]
        new = replace(source, **{field: value})
        if kind == "wrenches":
            return replace(sample, wrenches=tuple(new if w.foot == foot else w for w in sample.wrenches))
        return replace(sample, **{kind: new})

    return changed


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (keeps("imu", "angular_velocity"), "imu/data: the angular velocity of the IMU has not changed"),
        (keeps("imu", "specific_force"), "imu/data: the specific force of the IMU has not changed"),
        (keeps("wrenches", "wrench"), "l_foot/wrench: the wrench of the foot sensor 'l_foot' has not changed"),
        (keeps("joints", "position", KNEE), "joint_states: the position of joint 'l_knee' has not changed"),
        (keeps("joints", "velocity", KNEE), "joint_states: the velocity of joint 'l_knee' has not changed"),
        (keeps("joints", "effort", KNEE), "joint_states: the effort of joint 'l_knee' has not changed.*not measured"),
        (
            with_joints("effort", KNEE, lambda effort: 1e-308 * effort),
            "joint_states: the effort of joint 'l_knee' has not changed.*not measured",
        ),
    ],
)
def test_a_sensor_that_keeps_its_reading_while_the_robot_moves_is_stuck(walk, change, text):
    (finding,) = findings(between(walk, 0.0, 3.6), change)
    assert re.match(text, finding)


@pytest.mark.parametrize(
    ("scenario", "noise"),
    [("stand", "clean"), ("squat", "clean"), ("slope", "clean"), ("uneven", "realistic"), ("push_knee", "paper")],
)
def test_good_sensors_have_no_finding_whatever_the_robot_does(scenario, noise):
    """At rest without noise all readings keep their bits; the floor is steep or rough; somebody pushes."""
    estimator = Estimator(config(noise), ROBOT.urdf_xml)
    feed(estimator, recorded(scenario, 5.0, noise)[:: HIGH_RATE // RATE])
    assert estimator.health.findings == () and not any(event.code == "sensor" for event in estimator.health.events)


@pytest.mark.parametrize(("bias", "noise"), [(0.0, 0.0), (2.0, 1.0)])
def test_a_robot_that_hangs_in_the_air_and_moves_its_legs_has_no_finding(bias, noise):
    """On a stand that does not move: without noise, IMU and unloaded foot sensors rightly keep their readings."""
    model = pin.buildModelFromXML(ROBOT.urdf_xml, pin.JointModelFreeFlyer())
    data, rng = model.createData(), np.random.default_rng(0)
    estimator, base = Estimator(config(), ROBOT.urdf_xml), np.array([0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0])
    speed, offset = 2.0 * np.pi * (0.4 + 0.05 * np.arange(12)), bias * rng.normal(size=(2, 6))
    for stamp in range(0, 5_000_000_000, 4_000_000):
        phase = 1e-9 * stamp * speed
        q, v, a = 0.3 * np.sin(phase), 0.3 * speed * np.cos(phase), -0.3 * speed**2 * np.sin(phase)
        needed = pin.rnea(model, data, np.concatenate((base, q)), np.pad(v, (6, 0)), np.pad(a, (6, 0)))[6:]
        wrenches = offset + noise * rng.normal(size=(2, 6))
        estimator.add_joints(JointSample(stamp, q, v, needed + 2.0 * np.tanh(v / 0.02)))
        estimator.add_imu(ImuSample(stamp, 1e-3 * noise * rng.normal(size=3), np.array([0.0, 0.0, 9.81])))
        for foot in range(2):
            estimator.add_wrench(WrenchSample(stamp, foot, wrenches[foot]))
    assert estimator.health.findings == ()
