"""Pose of the base by several estimators, and their errors against the ground truth."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.signal import savgol_filter
from scipy.spatial.transform import Rotation

from benchmarks.icub.recording import JOINTS, Recording
from benchmarks.shared.estimates import held
from friction_estimator.estimation.estimator import Estimator
from friction_estimator.io.robot import Robot, load_robot
from friction_estimator.robot.model import RobotModel
from friction_estimator.types import BoolArray, FloatArray, ImuSample, JointSample, WrenchSample

_YAML = Path(__file__).with_name("icub.yaml")


@dataclass(frozen=True, slots=True)
class Track:
    """Pose and velocity of the base by one estimator, in the estimator's own world frame.

    Attributes
    ----------
    rotation : (s) base to world
    position, velocity : (s, 3), None where the estimator has none
    contact : (s, 2) None where it has none
    position_sigma, velocity_sigma : (s, 3) None where it has none
    """

    rotation: Rotation
    position: FloatArray | None = None
    velocity: FloatArray | None = None
    contact: BoolArray | None = None
    position_sigma: FloatArray | None = None
    velocity_sigma: FloatArray | None = None


def robot_of(urdf: Path, **changes: Any) -> Robot:
    """The iCub with the URDF of the recordings."""
    overrides = {key.replace("__", "."): value for key, value in changes.items()}
    return load_robot(_YAML, {"robot.urdf": str(urdf), **overrides})


def estimated(recording: Recording, urdf: Path, **changes: Any) -> Track:
    """Our stages, driven by the recorded samples and stamps; there are no torques."""
    robot = robot_of(urdf, **changes)
    estimator = Estimator(robot.config, robot.urdf_xml)
    order = [JOINTS.index(name) for name in estimator.joint_names]
    unknown = np.full(len(order), np.nan)
    estimates = []
    stamps = np.round(recording.time * 1e9).astype(int)
    for k, stamp in enumerate(stamps.tolist()):
        joints = JointSample(stamp, recording.position[k, order], recording.velocity[k, order], unknown)
        estimates += estimator.add_joints(joints)
        estimates += estimator.add_imu(ImuSample(stamp, recording.angular_velocity[k], recording.specific_force[k]))
        for foot in range(2):
            wrench = np.zeros(6)
            wrench[2] = recording.force[k, foot]
            estimates += estimator.add_wrench(WrenchSample(stamp, foot, wrench))
    estimates = held(estimates + estimator.flush(), stamps)
    return Track(
        rotation=Rotation.from_matrix([estimate.base.rotation_base_to_world for estimate in estimates]),
        position=np.array([estimate.base.position_base_in_world for estimate in estimates]),
        velocity=np.array([estimate.base.linear_velocity for estimate in estimates]),
        contact=np.array([estimate.phase.contact for estimate in estimates]),
        position_sigma=np.sqrt([estimate.base.pose_covariance.diagonal()[:3] for estimate in estimates]),
        velocity_sigma=np.sqrt([estimate.base.twist_covariance.diagonal()[:3] for estimate in estimates]),
    )


def integrated(recording: Recording, urdf: Path) -> Track:
    """Gyroscope alone, from the true attitude at the start."""
    robot = robot_of(urdf)
    rate = recording.angular_velocity @ RobotModel(robot.config, robot.urdf_xml).rotation_imu_to_base.T
    rotations = [recording.true_rotation[0]]
    steps = np.diff(recording.time)
    for k, step in enumerate(steps.tolist()):
        rotations.append(rotations[-1] * Rotation.from_rotvec(0.5 * (rate[k] + rate[k + 1]) * step))
    return Track(Rotation.concatenate(rotations))


def walked(recording: Recording, urdf: Path, contact: BoolArray) -> Track:
    """Legs alone: the standing sole that carries more stays as it is, rotation included, until the other takes over.

    The attitude at the start is the true one.
    """
    robot = robot_of(urdf)
    model = RobotModel(robot.config, robot.urdf_xml)
    order = [JOINTS.index(name) for name in model.joint_names]
    rotation, position, anchor, foot = recording.true_rotation[0].as_matrix(), np.zeros(3), None, -1
    rotations, positions = [], []
    for k in range(recording.time.size):
        at_rest = np.zeros(len(order)), np.zeros(3), np.array([0, 0, 9.81])
        dynamics = model.dynamics(recording.position[k, order], *at_rest)
        standing = np.flatnonzero(contact[k])
        support = int(standing[recording.force[k, standing].argmax()]) if standing.size else foot
        sole_rotation, sole = dynamics.foot_rotation_to_base[support], dynamics.foot_position_in_base[support]
        if anchor is None or support != foot:
            anchor, foot = (rotation @ sole_rotation, position + rotation @ sole), support
        rotation = anchor[0] @ sole_rotation.T
        position = anchor[1] - rotation @ sole
        rotations.append(rotation)
        positions.append(position)
    positions_array = np.array(positions)
    velocity = np.gradient(positions_array, recording.period, axis=0)
    return Track(Rotation.from_matrix(np.array(rotations)), positions_array, velocity, contact)


_ALIGNED = 1.0
_END = 0.2
_WINDOW = 9


@dataclass(frozen=True, slots=True)
class Errors:
    """Of one track.

    Attributes
    ----------
    angle : (s, 3) roll, pitch, yaw [deg]
    position, velocity : (s, 3) [m, m/s], NaN where the track has none
    distance : length of the horizontal path of the truth [m]
    duration : [s]
    """

    angle: FloatArray
    position: FloatArray
    velocity: FloatArray
    distance: float
    duration: float

    @property
    def yaw_drift(self) -> float:
        """Yaw error at the end over the time since the alignment [deg/min]."""
        return 60.0 * float(self.angle[self._end, 2].mean()) / self.duration

    @property
    def end_position(self) -> FloatArray:
        """Position error at the end, (3,) [m]."""
        return np.asarray(self.position[self._end].mean(axis=0))

    @property
    def _end(self) -> slice:
        return slice(-max(1, round(_END / self.duration * len(self.angle))), None)


def errors_of(track: Track, recording: Recording) -> Errors:
    """Compare a track with the truth of its recording."""
    truth, n = recording.true_rotation, round(_ALIGNED / recording.period)
    yaw = float(np.unwrap((track.rotation * truth.inv()).as_euler("ZYX")[:, 0])[:n].mean())
    align = Rotation.from_euler("z", -yaw)
    angle = _wrapped((align * track.rotation).as_euler("ZYX") - truth.as_euler("ZYX"))[:, ::-1]
    smooth = savgol_filter(recording.true_position, _WINDOW, 2, axis=0)
    true_velocity = differentiated(recording.true_position, recording.period)
    position = velocity = np.full_like(smooth, np.nan)
    if track.position is not None and track.velocity is not None:
        position = align.apply(track.position) - recording.true_position
        position = position - position[:n].mean(axis=0)
        velocity = align.apply(track.velocity) - true_velocity
    distance = float(np.linalg.norm(np.diff(smooth[:: _WINDOW * 5, :2], axis=0), axis=1).sum())
    return Errors(np.degrees(angle), position, velocity, distance, float(recording.time[-1]))


def differentiated(position: FloatArray, period: float) -> FloatArray:
    """Velocity (s, 3) of positions by Vicon, without delay."""
    return np.asarray(savgol_filter(position, _WINDOW, 2, deriv=1, delta=period, axis=0))


def _wrapped(angle: FloatArray) -> FloatArray:
    return np.asarray((angle + np.pi) % (2.0 * np.pi) - np.pi)


def reference_contact(recording: Recording, weight: float) -> BoolArray:
    """Non-causal reference of the contact of both soles (s, 2): forces above 5 % of the weight after a median filter.

    The median over 70 ms has no delay and passes no chatter; the online detector has hysteresis, debounce and neither
    of these.
    """
    half = 3
    padded = np.pad(recording.force, ((half, half), (0, 0)), mode="edge")
    middle = np.median(np.lib.stride_tricks.sliding_window_view(padded, 2 * half + 1, axis=0), axis=2)
    return np.asarray(middle > 0.05 * weight)


def contact_agreement(contact: BoolArray, reference: BoolArray) -> tuple[float, float]:
    """Part of the samples whose phase (both feet) agrees, and changes of contact per change of the reference."""
    changes, expected = (int(np.count_nonzero(np.diff(feet.astype(int), axis=0))) for feet in (contact, reference))
    return float((contact == reference).all(axis=1).mean()), changes / expected if expected else float("nan")
