"""Whatever a recording holds: every method refuses it with a reason, or gives finite parameters with error bars."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

import friction_estimator as fe
from friction_estimator.identification.fixed_base_model import FixedBaseModel
from friction_estimator.identification.inverse_dynamics.method import identify_inverse_dynamics
from friction_estimator.identification.inverse_dynamics.options import InverseDynamicsOptions
from friction_estimator.identification.recording.motion import to_motion
from friction_estimator.identification.rigid_body import RigidBodyOptions
from test.arm import ARM, COULOMB, JOINTS, URDF, VISCOUS

METHODS = ("inverse_dynamics", "friction_curve", "motor")
Array = np.ndarray


def recording(method: str, seconds: float = 5.0, seed: int = 0) -> fe.JointLog:
    """The arm with the columns that a method needs, at 100 Hz."""
    rng = np.random.default_rng(seed)
    time = np.arange(0.0, seconds, 0.01)
    omega, phase, amplitude = 2.0 * np.pi * rng.uniform(0.3, 1.5, (3, 1, 2)), rng.uniform(0.0, 6.0, (3, 1, 2)), 0.4
    angle = omega * time[:, None] + phase
    q = (amplitude * np.sin(angle)).sum(axis=0)
    v = (amplitude * omega * np.cos(angle)).sum(axis=0)
    a = (-amplitude * omega**2 * np.sin(angle)).sum(axis=0)
    friction = COULOMB * np.sign(v) + VISCOUS * v
    noise = 0.03 * rng.standard_normal(q.shape)
    effort = FixedBaseModel(URDF, JOINTS).torque(q, v, a) + friction + noise
    of_method = {
        "inverse_dynamics": (effort, {}),
        "friction_curve": (effort, {"friction": friction + noise}),
        "motor": (None, {"joint_torque": noise - friction, "pwm": 0.0 * q}),
    }
    return fe.JointLog("log", JOINTS, time, q, v + 0.01 * rng.standard_normal(q.shape), *of_method[method])


def identify(method: str, *logs: fe.JointLog, **options) -> fe.IdentificationResult:
    robot = ARM if method == "inverse_dynamics" else None
    return fe.identify(list(logs), robot, method=method, law="coulomb_viscous", **options)


def with_column(log: fe.JointLog, change: Callable[[Array], Array], *kinds: str) -> fe.JointLog:
    """The log with another column of the elbow, of every one of these kinds that it has."""

    def changed(signal: Array) -> Array:
        return np.column_stack([signal[:, 0], change(signal[:, 1])])

    return log.changed(lambda kind, signal: changed(signal) if kind in kinds else signal)


def few(value: float) -> Callable[[Array], Array]:
    return lambda column: np.where(np.arange(column.size) % 41 == 7, value, column)


def flickers(size: float) -> Callable[[Array], Array]:
    return lambda column: np.where(np.arange(column.size) % 97 == 5, size, 0.0)


MOTION, TORQUES = ("position", "velocity"), ("effort", "friction", "joint_torque")
DAMAGES: dict[str, Callable[[fe.JointLog], fe.JointLog]] = {
    "one sample": lambda log: log.rows(slice(1)),
    "two samples": lambda log: log.rows(slice(2)),
    "sixty samples": lambda log: log.rows(slice(60)),
    "no velocity": lambda log: replace(log, velocity=None),
    "jittered stamps": lambda log: replace(log, time=log.time + 4e-3 * np.sin(7.0 * np.arange(log.time.size)) ** 2),
    "unsorted stamps": lambda log: replace(log, time=log.time[np.argsort(np.sin(np.arange(log.time.size)))]),
    "repeated stamps": lambda log: replace(log, time=np.round(log.time, 1)),
    "nanoseconds": lambda log: replace(log, time=1e9 * log.time + 1.7e18),
    "tiny stamps": lambda log: replace(log, time=1e-300 * log.time),
    "gap": lambda log: log.rows(np.abs(np.arange(log.time.size) - 250) > 40),
    "elbow stands": lambda log: with_column(log, np.zeros_like, *MOTION),
    "elbow flickers": lambda log: with_column(replace(log, velocity=None), flickers(1e-4), "position"),
    "elbow flickers in the last bit": lambda log: with_column(
        replace(log, velocity=None), flickers(5e-324), "position"
    ),
    "elbow creeps": lambda log: with_column(log, lambda column: 1e-7 * column, *MOTION),
    "constant velocity column": lambda log: with_column(log, np.ones_like, "velocity"),
    "huge position": lambda log: with_column(log, few(1e100), "position"),
    "far from zero": lambda log: with_column(log, lambda column: column + 1e9, "position"),
    "denormal velocity": lambda log: with_column(log, lambda column: 1e-310 * column, "velocity"),
    "NaN and infinity": lambda log: with_column(with_column(log, few(np.nan), "velocity"), few(np.inf), *TORQUES),
    "no torque": lambda log: with_column(log, lambda column: np.full_like(column, np.nan), *TORQUES),
    "zero torque": lambda log: with_column(log, np.zeros_like, *TORQUES),
    "huge torque": lambda log: with_column(log, few(1e200), *TORQUES),
    "tiny torque": lambda log: with_column(log, lambda column: 1e-200 * column, *TORQUES),
    "whole numbers": lambda log: with_column(log, np.rint, *MOTION, *TORQUES),
    "friction in one direction": lambda log: with_column(log, np.abs, *TORQUES),
    "one joint": lambda log: log.select(("shoulder",)),
}
SINGLE = [(name,) for name in DAMAGES]
PAIRS = list(combinations(DAMAGES, 2))[::65]


@pytest.mark.parametrize("method", METHODS)
def test_odd_recordings_are_refused_or_give_finite_parameters(method: str) -> None:
    results = 0
    for names in (*SINGLE, *PAIRS):
        log = recording(method)
        largest = max(np.abs(signal).max() for signal in (log.effort, *log.inputs.values()) if signal is not None)
        for name in names:
            log = DAMAGES[name](log)
        try:
            result = identify(method, log)
        except fe.FrictionEstimatorError:
            continue
        results += 1
        assert np.isfinite(result.values).all() and np.isfinite(result.sigma).all(), names
        assert (np.abs(result.values[:, 0]) < 10.0 * largest + 2.0 * result.sigma[:, 0]).all(), (names, result.values)
        assert (np.abs(result.values) < 1e6).all(), (names, result.values)
    assert results > 10  # many damages leave something to identify


@pytest.mark.parametrize("method", METHODS)
def test_a_standing_joint_is_named_and_gets_no_parameters(method: str) -> None:
    whole = identify(method, recording(method))
    for damage in ("elbow stands", "elbow flickers", "elbow creeps"):
        result = identify(method, DAMAGES[damage](recording(method)))
        assert any(text.startswith("elbow") for text in result.verdicts)
        if "elbow" in result.joint_names:  # its prior
            np.testing.assert_array_equal(result.values[1], 0.0)
            assert result.sigma[1, 0] > COULOMB[1]
            assert not any("elbow" in name for name in result.parameters.names if "/" in name)
        else:
            assert result.joint_names == ("shoulder",)
            np.testing.assert_allclose(result.values[0], whole.values[0], rtol=0.05)


def test_torques_that_are_zero_everywhere_are_refused_by_name() -> None:
    for method, words in (
        ("inverse_dynamics", "the torque of every joint is zero in all samples"),
        ("friction_curve", "shoulder is left out: its measured friction is zero everywhere"),
        ("motor", "'joint_torque' of the motor 'shoulder' is zero in all samples"),
    ):
        log = recording(method)
        zero = replace(log, effort=None if log.effort is None else 0.0 * log.effort)
        with pytest.raises(fe.FrictionEstimatorError, match=words):
            identify(method, replace(zero, inputs={kind: 0.0 * signal for kind, signal in log.inputs.items()}))


def test_friction_is_identified_where_nothing_of_the_rigid_body_is_unknown() -> None:
    log = recording("inverse_dynamics", seconds=20.0)
    body = RigidBodyOptions(known_inertia=True, drive_inertia=False)
    options = InverseDynamicsOptions(body=body)
    found = identify_inverse_dynamics([to_motion(log)], FixedBaseModel(URDF, JOINTS), options)
    np.testing.assert_allclose(found.friction.values[:, :2], np.column_stack([COULOMB, VISCOUS]), rtol=0.02)


def test_a_few_drive_samples_of_an_idle_log_are_left_out_and_named() -> None:
    idle, driven = replace(recording("motor"), name="idle"), replace(recording("motor", seed=1), name="driven")
    pwm = np.zeros_like(idle.position)
    pwm[[50, 90], 0] = 0.3
    torque = driven.inputs["joint_torque"]
    driven = replace(driven, inputs={"joint_torque": 0.0 * torque + 0.2, "pwm": -0.5 * torque})
    clean = identify("motor", idle, driven)
    result = identify("motor", replace(idle, inputs={**idle.inputs, "pwm": pwm}), driven)
    found = "idle: pwm up to 0.3; 2 of 500 samples have a drive, the first one 0.500 s after its start: it counts as"
    assert any(text.startswith(found) for text in result.warnings)
    np.testing.assert_allclose(result.values, clean.values, rtol=0.02)
    assert any(text.startswith("driven counts as driven") for text in result.provenance.choices)
