"""Where the velocity error of a walk comes from: velocities of the IMU origin by Vicon, by accelerometer and by legs.

These three share the gyroscope at most, so that the noise of each follows from the differences of all pairs
(three-cornered hat):
``var_a = (var(a - b) + var(a - c) - var(b - c)) / 2``, one frequency band at a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.integrate import cumulative_trapezoid
from scipy.signal import butter, coherence, sosfiltfilt, welch
from scipy.spatial.transform import Rotation

from benchmarks.icub.recording import JOINTS, Recording
from benchmarks.icub.tracks import Track, differentiated, estimated, robot_of
from friction_estimator.base.velocity import imu_velocity_by_legs
from friction_estimator.metrics import root_mean_square
from friction_estimator.robot.model import RobotModel
from friction_estimator.types import GRAVITY, BoolArray, FloatArray

_BANDS = ((2.0, 4.0), (4.0, 7.0), (7.0, 12.0), (12.0, 20.0))
_LEGS = ("hip_pitch", "hip_roll", "hip_yaw", "knee", "ankle_pitch", "ankle_roll")
_STARTED = 3.0
_SEGMENT = 200
_WALKED = 0.5
_SLOW = 4.0


@dataclass(frozen=True, slots=True)
class Sources:
    """Velocities of the IMU origin, world axes of our estimate, (s, 3) [m/s]; by the accelerometer above 1 Hz only."""

    vicon: FloatArray
    accelerometer: FloatArray
    legs: FloatArray
    legs_by_position: FloatArray
    legs_hip_pitch_by_position: FloatArray
    estimate: FloatArray


def study(recordings: list[Recording], urdf: Path) -> str:
    """Markdown for recordings that walk: recorded joint velocities, errors of the legs, and noise in bands."""
    walks = [one for one in recordings if np.linalg.norm(one.true_position[-1] - one.true_position[0]) > _WALKED]
    return "\n\n".join(
        f"**{one.name}**\n\n{_joints(one)}\n\n{_velocities(one, sources_of(one, urdf))}" for one in walks
    )


def sources_of(recording: Recording, urdf: Path) -> Sources:
    """Velocities of the IMU origin by all sources."""
    track, robot = estimated(recording, urdf), robot_of(urdf)
    model, period = RobotModel(robot.config, robot.urdf_xml), recording.period
    slope = np.gradient(recording.position, period, axis=0)
    hips = recording.velocity.copy()
    columns = [JOINTS.index(f"{side}_hip_pitch") for side in "lr"]
    hips[:, columns] = slope[:, columns]
    gyro = recording.angular_velocity @ model.rotation_imu_to_base.T
    gyro = gyro - gyro[: round(1.0 / period)].mean(axis=0)
    yaw = (track.rotation * recording.true_rotation.inv())[: round(1.0 / period)].mean().as_euler("ZYX")[0]
    point = recording.true_position + recording.true_rotation.apply(model.imu_position_in_base)
    force = recording.specific_force @ model.rotation_imu_to_base.T
    high = butter(2, 1.0, "highpass", fs=1.0 / period, output="sos")
    accelerated = cumulative_trapezoid(track.rotation.apply(force) - [0.0, 0.0, GRAVITY], dx=period, axis=0, initial=0)
    lever = np.cross(gyro, model.imu_position_in_base)
    return Sources(
        vicon=Rotation.from_euler("z", yaw).apply(differentiated(point, period)),
        accelerometer=sosfiltfilt(high, accelerated, axis=0),
        legs=_by_legs(recording, model, track, gyro, recording.velocity),
        legs_by_position=_by_legs(recording, model, track, gyro, slope),
        legs_hip_pitch_by_position=_by_legs(recording, model, track, gyro, hips),
        estimate=(track.velocity if track.velocity is not None else 0.0) + track.rotation.apply(lever),
    )


def _by_legs(
    recording: Recording, model: RobotModel, track: Track, gyro: FloatArray, joint_velocity: FloatArray
) -> FloatArray:
    order = [JOINTS.index(name) for name in model.joint_names]
    contact: BoolArray = track.contact if track.contact is not None else np.ones((len(gyro), 2), dtype=bool)
    velocities = []
    for k, R in enumerate(track.rotation.as_matrix()):
        dynamics = model.dynamics(
            recording.position[k, order], joint_velocity[k, order], gyro[k], np.array([0, 0, GRAVITY])
        )
        velocities.append(imu_velocity_by_legs(recording.force[k].clip(1e-3), contact[k], R, dynamics))
    return np.array(velocities)


def _joints(recording: Recording) -> str:
    """How well recorded joint velocities are the slope of the recorded positions."""
    lines = [
        "| joint | velocity RMS [rad/s] | less slope of the position, RMS | coherence at 4-7 Hz |\n|---|---|---|---|"
    ]
    walked = slice(round(_STARTED / recording.period), None)
    for joint in _LEGS:
        columns = [JOINTS.index(f"{side}_{joint}") for side in "lr"]
        slope = np.gradient(recording.position[:, columns], recording.period, axis=0)[walked]
        recorded = recording.velocity[walked][:, columns]
        frequency, common = coherence(recorded, slope, 1.0 / recording.period, nperseg=_SEGMENT, axis=0)
        band = (frequency >= 4.0) & (frequency < 7.0)
        sizes = (f"{root_mean_square(one.ravel()):.3f}" for one in (recorded, recorded - slope))
        lines.append(f"| {joint} | {' | '.join(sizes)} | {common[band].mean():.2f} |")
    return "\n".join(lines)


def _velocities(recording: Recording, sources: Sources) -> str:
    walked = slice(round(_STARTED / recording.period), None)
    lines = [f"| velocity of the IMU | less Vicon, RMS x, y, z [m/s] | both below {_SLOW:.0f} Hz |\n|---|---|---|"]
    low = butter(2, _SLOW, fs=1.0 / recording.period, output="sos")
    for name in ("legs", "legs_hip_pitch_by_position", "legs_by_position", "estimate"):
        error = getattr(sources, name) - sources.vicon
        cells = [
            ", ".join(f"{x:.3f}" for x in root_mean_square(e[walked])) for e in (error, sosfiltfilt(low, error, axis=0))
        ]
        lines.append(f"| {name.replace('_', ' ')} | {' | '.join(cells)} |")
    lines += ["", "| noise in x, y [m/s] | " + " | ".join(f"{a:.0f}-{b:.0f} Hz" for a, b in _BANDS) + " |"]
    lines.append("|---" * (1 + len(_BANDS)) + "|")
    trio = (sources.vicon, sources.accelerometer, sources.legs)
    noises = noise_of_each(tuple(one[walked, :2] for one in trio), recording.period)
    for name, noise in zip(("Vicon", "accelerometer", "legs"), noises, strict=True):
        lines.append(f"| {name} | " + " | ".join(f"{x:.3f}, {y:.3f}" for x, y in noise) + " |")
    return "\n".join(lines)


def noise_of_each(three: tuple[FloatArray, ...], period: float) -> FloatArray:
    """Standard deviations (3, bands, columns) of the noise of three measurements (s, columns) of the same signal."""
    noises = []
    for k in range(3):
        a, b, c = three[k], three[k - 1], three[k - 2]
        near, far, others = (_band_variance(pair, period) for pair in (a - b, a - c, b - c))
        noises.append(np.sqrt(np.maximum(0.5 * (near + far - others), 0.0)))
    return np.array(noises)


def _band_variance(values: FloatArray, period: float) -> FloatArray:
    """Variance in each of the bands, (bands, columns)."""
    frequency, density = welch(values, 1.0 / period, nperseg=_SEGMENT, axis=0)
    inside = [(frequency >= low) & (frequency < high) for low, high in _BANDS]
    return np.array([density[band].sum(axis=0) * frequency[1] for band in inside])
