"""Signals of whole recordings, from bags and from the simulation, through the estimator's own stages; errors on them.

Errors are those of the external torque of MOB-Net, of the momentum observer alone and of a friction model (Lim et al.
2024, Table 5). The truth is the low-passed torque of the true foot wrenches in simulation, and of the measured ones of
a real robot.
"""

from __future__ import annotations

import dataclasses
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from friction_estimator.config import Config
from friction_estimator.errors import LearningError
from friction_estimator.estimation.estimator import Estimator
from friction_estimator.estimation.pipeline import has_effort
from friction_estimator.io.bags.replay import replay_bag
from friction_estimator.io.documents import write_atomically
from friction_estimator.io.robot import Robot
from friction_estimator.learning.external_torque import Fusion
from friction_estimator.learning.network import Model, RobotIdentity
from friction_estimator.learning.signals import SignalStage
from friction_estimator.metrics import mean, root_mean_square
from friction_estimator.robot.model import RobotModel
from friction_estimator.types import AnyPath, FloatArray, FrictionEstimate, IntArray, Progress, SensorFrame

Float32Array = NDArray[np.float32]
_ARRAYS = ("inputs", "residual", "external", "true_external", "starts", "observed")
"""Fields of :class:`SignalRecording` that a file holds."""
_MIN_DURATION = 300.0
"""Data for a training below this are few: a network of six minutes has a third more error than one of an hour [s]."""
_CONTACT_FORCE_SHARE, _LANDING_TIME_SHARE = 0.1, 0.005
"""Change of the force on the base, over the weight, that is a contact; part of the time in which landings make one."""
_MIN_RMS_VELOCITY = 0.01
"""Root mean square velocity below which a joint hardly moves [rad/s]."""


@dataclass(frozen=True, slots=True)
class SignalRecording:
    """Network inputs and targets of MOB-Net for ``m`` samples."""

    inputs: Float32Array  # (m, x) see Signals
    # (m, nv) see there, too
    residual: Float32Array
    external: Float32Array
    true_external: Float32Array | None  # (m, nv) `external` of the true foot wrenches; None without ground truth
    starts: IntArray  # (s,) samples before which there is a gap, the first one included
    period: float  # median time between samples [s]
    # (m, 2 n) external torque of the friction stage and its sigma, NaN while unknown; None: it did not run
    observed: Float32Array | None = None

    def __len__(self) -> int:
        return len(self.inputs)

    @property
    def target(self) -> Float32Array:
        """Uncertainty torque (m, nv) to learn: the residual without the torque of the measured foot wrenches."""
        return self.residual - self.external

    @property
    def truth(self) -> Float32Array:
        """External torque (m, nv) to compare with: of the true foot wrenches, else of the measured ones."""
        return self.external if self.true_external is None else self.true_external

    def save(self, path: Path, identity: RobotIdentity) -> None:
        """Write an ``.npz`` with the identity of the robot; an interruption leaves no half file."""
        arrays = {name: getattr(self, name) for name in _ARRAYS if getattr(self, name) is not None}
        content = io.BytesIO()
        np.savez(content, period=self.period, identity=json.dumps(dataclasses.asdict(identity)), **arrays)
        write_atomically(path, content.getvalue())

    def pieces(self) -> list[slice]:
        """Slices of the samples, each without a gap in time."""
        ends = [*self.starts[1:].tolist(), len(self)]
        return [slice(start, end) for start, end in zip(self.starts.tolist(), ends, strict=True)]


def load_signals(path: Path, identity: RobotIdentity) -> SignalRecording:
    """Read what :meth:`SignalRecording.save` has written of this robot.

    Raises
    ------
    LearningError
        When the file cannot be read, is damaged, or is of another robot.
    """
    try:
        with np.load(path, allow_pickle=False) as arrays:
            identity.check(json.loads(str(arrays["identity"])), f"the recording {path}")
            values: dict[str, Any] = {name: arrays[name] for name in _ARRAYS if name in arrays}
            return SignalRecording(**{"true_external": None, **values}, period=float(arrays["period"]))
    except (OSError, ValueError, KeyError, TypeError, BadZipFile) as error:
        raise LearningError(f"{path} is not a recording of signals, or it is damaged: {error}") from None


def training_doubts(recordings: Sequence[SignalRecording], robot: Robot) -> tuple[str, ...]:
    """What makes recordings poor data for a training, one sentence each.

    Networks learn all that the feet do not measure as uncertainty torque: a hoist, a hand, an obstacle. A wrong model
    adds a force to the base that hardly changes; one that does, by more than a tenth of the weight, is a contact.
    """
    model = RobotModel(robot.config, robot.urdf_xml)
    names, period = model.joint_names, recordings[0].period
    seconds = sum(len(one) * one.period for one in recordings)
    found = []
    if seconds < _MIN_DURATION:
        found.append(
            f"{seconds:.0f} s of data are few: use {_MIN_DURATION:g} s or more, with all commands of the robot"
        )
    if model.base_dofs:
        force = [one.target[:, :3] - np.median(one.target[:, :3], axis=0) for one in recordings]
        touched = [np.linalg.norm(one, axis=1) > _CONTACT_FORCE_SHARE * model.weight for one in force]
        if (share := np.concatenate(touched).mean()) > _LANDING_TIME_SHARE:
            number = int(np.argmax([one.mean() for one in touched]))
            first = float(np.argmax(touched[number])) * period
            found.append(
                f"for {share:.0%} of the time a force on the base changes by more than {_CONTACT_FORCE_SHARE:.0%} of "
                f"the weight, and no foot sensor measures it (first {first:.1f} s into recording {number + 1}): leave "
                "out what was recorded while the robot was held, hoisted or hit, or check the foot sensors"
            )
    n = len(names)
    power = np.mean([np.mean(one.inputs[:, n : 2 * n] ** 2, axis=0, dtype=float) for one in recordings], axis=0)
    if still := [name for name, value in zip(names, power.tolist(), strict=True) if value < _MIN_RMS_VELOCITY**2]:
        found.append(f"these joints hardly move, so nothing is learned about their motion: {', '.join(still)}")
    return tuple(found)


class SignalReader(Estimator):
    """An :class:`Estimator` that records the signals, and estimates friction only where that is wanted.

    Samples without torques, and those in which the residual of some row is not known, are left out.

    Parameters
    ----------
    config, urdf_xml : as of :class:`Estimator`
    with_observer : True: the external torque of the friction stage is recorded, too
    """

    def __init__(self, config: Config, urdf_xml: str, with_observer: bool = False) -> None:
        no_compensation = dataclasses.replace(config.compensation, enabled=False)
        super().__init__(dataclasses.replace(config, stages="friction", compensation=no_compensation), urdf_xml)
        self._robot = self.pipeline.robot
        self._rows = self._robot.base_dofs + len(self._robot.joint_names)
        self._stage = SignalStage(self._robot, config.momentum.inputs_are_held)
        self._values, self._count = bytearray(), 0
        self._with_observer = with_observer
        self._starts: list[int] = []
        self._steps: list[float] = []
        self._gap = True

    def recording(self) -> SignalRecording:
        """Recording with the signals of all samples so far.

        Raises
        ------
        LearningError
            When there is none.
        """
        if not self._count:
            raise LearningError(
                "no sample has motor torques, a working IMU and the wrenches of all feet: record joint states with "
                "efforts, the IMU and all feet together"
            )
        n = self._stage.input_count
        table = np.frombuffer(bytes(self._values), dtype=np.float32).reshape(self._count, -1)
        inputs, residual, external, observed = np.split(table, n + self._rows * np.arange(3), axis=1)
        starts, period = np.array(self._starts, dtype=np.intp), float(np.median(self._steps))
        return SignalRecording(
            inputs, residual, external, None, starts, period, observed if self._with_observer else None
        )

    def process(self, frame: SensorFrame) -> list[FrictionEstimate]:
        """Keep the signals; without the observer, friction is NaN."""
        sensed, joints = self.pipeline.sense(frame), self.pipeline.unknown_friction
        if has_effort(frame):
            signals, observed = self._stage.step(frame, sensed.attitude, sensed.dynamics), np.empty(0)
            if self._with_observer:
                joints = self.pipeline.friction.step(frame, sensed.attitude, sensed.phase, sensed.dynamics)
                observed = np.concatenate((joints.external_torque, joints.external_torque_sigma))
            self._add(np.concatenate((signals.inputs, signals.residual, signals.external)), observed, frame.dt)
        else:
            self._stage.reset()
            self._gap = True
        return [self.pipeline.estimate(frame, sensed, joints)]

    def _add(self, known: FloatArray, observed: FloatArray, dt: float) -> None:
        """Keep a sample; ``known`` must be finite."""
        if not np.isfinite(known).all():
            self._gap = True
            return
        if self._gap:
            self._starts.append(self._count)
        self._gap = False
        self._values += np.concatenate((known, observed)).astype(np.float32).tobytes()
        self._count += 1
        self._steps.append(dt)


def read_bag(
    bag: AnyPath,
    robot: Robot,
    namespace: str = "",
    progress: Progress | None = None,
    with_observer: bool = False,
) -> tuple[SignalRecording, tuple[str, ...]]:
    """Read the signals of MOB-Net from a bag; return findings about its sensors, too, one sentence each.

    Parameters
    ----------
    bag : path of the rosbag2
    robot : that the bag is of, with its URDF
    namespace : of the topics in the bag
    progress : called with the number of messages done and of all
    with_observer : True: the external torque of the friction stage is recorded, too

    Raises
    ------
    BagError, LearningError
        When the bag lacks a sensor: targets need motor torques, the IMU and the wrenches of all feet.
    """
    reader = SignalReader(robot.config, robot.urdf_xml, with_observer)
    summary = replay_bag(
        bag, None, robot.config, robot.urdf_xml, estimator=reader, namespace=namespace, progress=progress
    )
    try:
        return reader.recording(), summary.warnings
    except LearningError as error:
        raise LearningError(f"nothing can be learned from {bag}: {error}") from None


_FRICTION_TERMS = ("coulomb", "static", "viscous", "load", "squared load")
"""Columns of :func:`friction_columns`."""
_WITHOUT_SIGMA = ("MOB", "MOB-fric")
"""Methods of the comparison that give no sigma."""
_SIGN_VELOCITY, _STRIBECK_VELOCITY = 0.02, 0.5
"""Velocities over which dry friction changes its sign, and static friction falls to Coulomb friction [rad/s]."""


@dataclass(frozen=True, slots=True)
class ExternalTorqueErrors:
    """Errors of the external torque in all rows."""

    rows: tuple[str, ...]  # (nv,) names: force and moment on the base, then the joints
    limbs: Mapping[str, IntArray]  # rows of each limb, by its name
    samples: int  # number of samples
    truth_rms: FloatArray  # (nv,) root mean square of the true external torque
    # (nv,) root mean square error of each method: the momentum observer alone (MOB), with a friction model of
    # velocity and motor torque fitted to the training data (MOB-fric, after Lee et al. 2015), and MOB-Net; where
    # the friction stage has run, also its observer, which needs the foot sensors, and both together (fused), NaN
    # in the rows of the base
    rms: Mapping[str, FloatArray]
    # (nv,) part of the samples whose error is below 1.96 sigma, of the methods with a sigma; .95 is consistent
    coverage: Mapping[str, FloatArray]


def friction_columns(velocity: FloatArray, effort: FloatArray) -> FloatArray:
    """Regressors of a joint's friction (m, p): Coulomb, static, viscous, and terms of the motor torque."""
    direction = np.tanh(velocity / _SIGN_VELOCITY)
    static = direction * np.exp(-np.abs(velocity) / _STRIBECK_VELOCITY)
    return np.stack((direction, static, velocity, direction * np.abs(effort), direction * effort**2), axis=-1)


def fit_friction(recordings: Sequence[SignalRecording], joints: int) -> FloatArray:
    """Parameters (n, p) of :func:`friction_columns` that explain the joint rows of the targets best."""
    parameters = np.empty((joints, len(_FRICTION_TERMS)))
    for joint in range(joints):
        columns = np.concatenate([_columns(one.inputs, joints, joint) for one in recordings])
        target = np.concatenate([one.target[:, joint - joints] for one in recordings])
        parameters[joint] = np.linalg.lstsq(columns, -target.astype(float), rcond=None)[0]
    return parameters


def predicted(model: Model, recording: SignalRecording) -> tuple[FloatArray, FloatArray]:
    """Uncertainty torque and its sigma (m, nv) of a recording, sample by sample as in the live node."""
    network = model.estimator()
    torque, sigma = np.empty((2, len(recording), model.rows))
    for piece in recording.pieces():
        network.reset()
        for k in range(piece.start, piece.stop):
            torque[k], sigma[k] = network.step(recording.inputs[k].astype(float))
    return torque, sigma


def evaluate(model: Model, recordings: Sequence[SignalRecording]) -> ExternalTorqueErrors:
    """Errors over all samples of some recordings."""
    found = [_errors(model, one) for one in recordings]
    names = dict.fromkeys(name for one in found for name in one)
    every = {
        name: [np.concatenate(parts) for parts in zip(*(one[name] for one in found if name in one), strict=True)]
        for name in names
    }
    coverage = {
        name: mean(np.where(np.isnan(error), np.nan, np.abs(error) < 1.96 * sigma))
        for name, (error, sigma) in every.items()
        if name not in _WITHOUT_SIGMA
    }
    base = ("base force x", "base force y", "base force z", "base moment x", "base moment y", "base moment z")
    joint_names, truth = model.identity.joint_names, np.concatenate([one.truth.astype(float) for one in recordings])
    return ExternalTorqueErrors(
        (*base[: model.rows - len(joint_names)], *joint_names),
        {one.module.name: one.module.outputs for one in model.networks if not one.module.is_base},
        len(truth),
        root_mean_square(truth),
        {name: root_mean_square(error) for name, (error, _) in every.items()},
        coverage,
    )


def _errors(model: Model, recording: SignalRecording) -> dict[str, tuple[FloatArray, FloatArray]]:
    """Error and sigma (m, nv) of each method, NaN where it has none; nothing but the ground touches the robot."""
    n = len(model.identity.joint_names)
    torque, sigma = predicted(model, recording)
    error, friction = (recording.residual - recording.truth).astype(float), np.zeros(torque.shape)
    for joint in range(n):
        friction[:, joint - n] = -_columns(recording.inputs, n, joint) @ model.friction[joint]
    unknown = np.full(error.shape, np.nan)
    errors = {"MOB": (error, unknown), "MOB-fric": (error - friction, unknown), "MOB-Net": (error - torque, sigma)}
    if recording.observed is not None:
        observed = recording.observed.astype(float).reshape(-1, 2, n)
        network, fusion, fused = np.stack((error - torque, sigma), axis=1)[..., -n:], Fusion(n), np.empty_like(observed)
        for k in range(len(fused)):
            fused[k] = fusion.step(observed[k], network[k], recording.period)
        for name, values in (("observer", observed), ("fused", fused)):
            errors[name] = unknown.copy(), unknown.copy()
            for of_all_rows, of_joints in zip(errors[name], np.moveaxis(values, 1, 0), strict=True):
                of_all_rows[:, -n:] = of_joints
    return errors


def _columns(inputs: Float32Array, joints: int, joint: int) -> FloatArray:
    values = inputs.astype(float)
    return friction_columns(values[:, joints + joint], values[:, 2 * joints + joint])
