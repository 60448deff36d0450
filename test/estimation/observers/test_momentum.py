"""Claims about the momentum observer (Lim et al. 2024, section 3.2)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest

from friction_estimator.config import SensorNoise
from friction_estimator.estimation.observers.momentum import MomentumObserver
from friction_estimator.types import Attitude, ContactPhase, SensorFrame
from test.biped import suralp_config

DT = 1e-3
FINE = 5e-5


@pytest.fixture(scope="module")
def flight(urdf_xml):
    """0.4 s of the tumbling robot, pushed at the feet, integrated finely by pinocchio alone: (frames, friction)."""
    return list(_tumble(urdf_xml, DT, 400))


def _tumble(urdf_xml, dt, count):
    rng = np.random.default_rng(11)
    model = pin.buildModelFromXML(urdf_xml, pin.JointModelFreeFlyer())
    data = model.createData()
    feet = [model.getFrameId("l_sole"), model.getFrameId("r_sole")]
    q, v = pin.neutral(model), rng.normal(size=18) * 0.1
    amplitude, frequency, shift = rng.normal(size=12) * 3.0, rng.uniform(1, 4, 12), rng.uniform(0, 6, 12)
    for k in range(count):
        torque = amplitude * np.sin(2 * np.pi * frequency * k * dt + shift)
        wrenches = np.outer([1.0, -0.7], [2.0, -3.0, 20.0, 0.3, 0.5, -0.3]) * np.sin(7.0 * k * dt + 1.0)
        forces = [pin.Force.Zero() for _ in range(model.njoints)]
        for frame_id, wrench in zip(feet, wrenches, strict=True):
            frame = model.frames[frame_id]
            forces[frame.parentJoint] += frame.placement.act(pin.Force(wrench))
        external = pin.StdVec_Force(forces)

        def acceleration(q, v, torque=torque, external=external):
            generalized = np.r_[np.zeros(6), torque - _friction(v[6:])]
            return pin.aba(model, data, q, v, generalized, external)

        a = acceleration(q, v)
        yield _frame(model, data, k, dt, q, v, a, torque, wrenches), _friction(v[6:])
        for _ in range(round(dt / FINE)):
            h = FINE
            middle_q = pin.integrate(model, q, 0.5 * h * v)
            middle_v = v + 0.5 * h * acceleration(q, v)
            q, v = pin.integrate(model, q, h * middle_v), v + h * acceleration(middle_q, middle_v)


def _friction(dq):
    return 0.8 * np.tanh(dq / 0.2) + 0.5 * dq


def _frame(model, data, k, dt, q, v, a, torque, wrenches):
    imu = model.getFrameId("imu_link")
    pin.forwardKinematics(model, data, q, v, a)
    pin.updateFramePlacements(model, data)
    rotation = data.oMi[1].rotation
    specific = pin.getFrameClassicalAcceleration(model, data, imu, pin.LOCAL).linear - rotation.T @ [0, 0, -9.81]
    return SensorFrame(
        stamp_ns=round(k * dt * 1e9),
        dt=dt if k else 0.0,
        position=q[7:].copy(),
        velocity=v[6:].copy(),
        effort=torque,
        angular_velocity=v[3:6].copy(),
        specific_force=specific,
        wrenches=wrenches,
        imu_fresh=True,
        wrench_fresh=np.array([True, True]),
        readings_per_sample=np.ones(3),
    )


def observe(robot, frames, **changes):
    observer = MomentumObserver(suralp_config(observer="momentum", **changes), robot)
    for frame in frames:
        attitude = Attitude(
            rotation_base_to_world=np.full((3, 3), np.nan),  # not needed, and so never read
            angular_velocity=frame.angular_velocity,
            angular_acceleration=np.full(3, np.nan),
            specific_force=frame.specific_force,
            covariance=np.full((3, 3), np.nan),
            rate_covariance=np.full((3, 3), np.nan),
        )
        phase = ContactPhase(contact=np.array([True, True]), since=np.array([1.0, 1.0]), name="")
        dynamics = robot.dynamics(frame.position, frame.velocity, frame.angular_velocity, frame.specific_force)
        yield observer, observer.step(frame, attitude, phase, dynamics)


def residual_errors(robot, flight, dt, **changes):
    """Residual minus low-passed truth, once the start of both filters is forgotten (0.25 s)."""
    frames, truth = zip(*flight, strict=True)
    errors, low_passed, last = [], None, None
    decay = np.exp(-30.0 * dt)
    for friction, (_, measured) in zip(truth, observe(robot, frames, **changes), strict=True):
        low_passed = friction if low_passed is None else decay * low_passed + (1.0 - decay) * 0.5 * (last + friction)
        last = friction
        errors.append(measured.friction - low_passed)
    return np.array(errors)[round(0.25 / dt) :]


@pytest.mark.parametrize(("input_hold", "bound"), [("forward", 0.03), ("trapezoid", 0.07)])
def test_residual_is_the_low_passed_friction(robot, flight, input_hold, bound):
    """To what 1 ms of holding the inputs costs, in a tumble of up to 6 rad/s and 4 N m of friction."""
    errors = residual_errors(robot, flight, DT, momentum__input_hold=input_hold)
    assert len(errors) > 100
    assert np.abs(errors).max() < bound


def test_error_of_the_residual_is_of_first_order_in_the_sampling_period(robot, urdf_xml, flight):
    coarse = np.abs(residual_errors(robot, flight, DT)).max()
    fine = np.abs(residual_errors(robot, list(_tumble(urdf_xml, DT / 4, 1200)), DT / 4)).max()
    assert fine < 0.4 * coarse


def test_observer_measures_in_flight_and_only_after_it_has_settled(robot, flight):
    frames = [frame for frame, _ in flight]
    available = [measured.available.all() for _, measured in observe(robot, frames)]
    first = available.index(True)
    assert 4.0 / 30.0 <= first * DT <= 4.0 / 30.0 + 2 * DT
    assert all(available[first:])


def test_a_silent_foot_sensor_silences_its_limb_only(robot, flight):
    frames = [frame for frame, _ in flight]
    frames[-1] = replace(frames[-1], wrench_fresh=np.array([False, True]))
    *_, (_, last) = observe(robot, frames)
    assert last.available.tolist() == [False] * 6 + [True] * 6


def foot_noise(rng: np.random.Generator, noise: SensorNoise, count: int, every: int) -> np.ndarray:
    """Errors (count, 2, 6) of two wrenches between readings of which each has its own."""
    readings = rng.normal(size=(count // every + 2, 2, 6)) * ([noise.force_std] * 3 + [noise.moment_std] * 3)
    row, part = np.divmod(np.arange(count) / every, 1.0)
    before, after = readings[row.astype(int)], readings[row.astype(int) + 1]
    return before + part[:, None, None] * (after - before)


@pytest.mark.parametrize(("every", "least"), [(1, 0.7), (10, 0.5)])
def test_published_sigma_matches_the_spread_under_sensor_noise(robot, flight, every, least):
    """NEES: squared error over variance averages to one, also where the foot sensors are read every tenth time.

    Values between two readings are smoother than white noise, which the variance leaves out.
    """
    frames = [frame for frame, _ in flight]
    rng = np.random.default_rng(3)
    changes = {"sensors__velocity_std": 5e-3, "sensors__specific_force_std": 0.02, "sensors__effort_std": 0.1}
    changes |= {"sensors__force_std": 10.0, "sensors__moment_std": 2.0}
    noise = suralp_config(**changes).sensors
    clean = [measured for _, measured in observe(robot, frames, **changes)]
    ratios = []
    for _ in range(3):
        errors = foot_noise(rng, noise, len(frames), every)
        noisy = [
            replace(
                frame,
                velocity=frame.velocity + noise.velocity_std * rng.normal(size=12),
                effort=frame.effort + noise.effort_std * rng.normal(size=12),
                specific_force=frame.specific_force + noise.specific_force_std * rng.normal(size=3),
                angular_velocity=frame.angular_velocity + noise.angular_velocity_std * rng.normal(size=3),
                wrenches=frame.wrenches + error,
                readings_per_sample=np.array([1.0, 1.0 / every, 1.0 / every]),
            )
            for frame, error in zip(frames, errors, strict=True)
        ]
        for reference, (_, measured) in zip(clean, observe(robot, noisy, **changes), strict=True):
            if measured.available.all():
                ratios.append(((measured.friction - reference.friction) / measured.sigma) ** 2)
    assert least < np.mean(ratios) < 1.3
