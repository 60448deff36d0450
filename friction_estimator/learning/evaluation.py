"""External torque of MOB-Net beside that of the momentum observer alone and with a friction model (Table 5).

The truth is the low-passed torque of the true foot wrenches in simulation, and of the measured ones of a real robot.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from friction_estimator.learning.network import Model
from friction_estimator.learning.recording import Float32Array, SignalRecording
from friction_estimator.types import FloatArray

FRICTION_TERMS = ("coulomb", "static", "viscous", "load", "squared load")
"""Columns of :func:`friction_columns`."""
_SHARPNESS, _STRIBECK = 0.02, 0.5
"""Velocities over which dry friction changes its sign, and static friction falls to Coulomb friction [rad/s]."""


@dataclass(frozen=True, slots=True)
class ExternalTorqueErrors:
    """Errors of the external torque in all rows.

    Attributes
    ----------
    rows : (nv,) names: force and moment on the base, then the joints
    samples : number of samples
    truth_rms : (nv,) root mean square of the true external torque
    observer, friction, network : (nv,) root mean square error of the momentum observer alone, with a friction model of
        velocity and motor torque fitted to the training data (after Lee et al. 2015), and with MOB-Net
    coverage : (nv,) part of the samples whose error is below 1.96 sigma of MOB-Net; .95 is consistent
    """

    rows: tuple[str, ...]
    samples: int
    truth_rms: FloatArray
    observer: FloatArray
    friction: FloatArray
    network: FloatArray
    coverage: FloatArray


def friction_columns(velocity: FloatArray, effort: FloatArray) -> FloatArray:
    """Regressors of a joint's friction (m, p): Coulomb, static, viscous, and terms of the motor torque."""
    direction = np.tanh(velocity / _SHARPNESS)
    static = direction * np.exp(-np.abs(velocity) / _STRIBECK)
    return np.stack((direction, static, velocity, direction * np.abs(effort), direction * effort**2), axis=-1)


def fit_friction(recordings: Sequence[SignalRecording], joints: int) -> FloatArray:
    """Parameters (n, p) of :func:`friction_columns` that explain the joint rows of the targets best."""
    parameters = np.empty((joints, len(FRICTION_TERMS)))
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
    joints = len(model.identity.joint_names)
    squares, inside, samples = np.zeros((4, model.rows)), np.zeros(model.rows), 0
    for recording in recordings:
        truth = recording.external if recording.true_external is None else recording.true_external
        torque, sigma = predicted(model, recording)
        friction = np.zeros((len(recording), model.rows))
        for joint in range(joints):
            columns = _columns(recording.inputs, joints, joint)
            friction[:, joint - joints] = -columns @ model.friction[joint]
        error = recording.residual - truth
        for number, values in enumerate((truth, error, error - friction, error - torque)):
            squares[number] += np.sum(values.astype(float) ** 2, axis=0)
        inside += np.sum(np.abs(error - torque) < 1.96 * sigma, axis=0)
        samples += len(recording)
    base = ("base force x", "base force y", "base force z", "base moment x", "base moment y", "base moment z")
    rows = (*base[: model.rows - joints], *model.identity.joint_names)
    truth_rms, observer, with_friction, with_network = np.sqrt(squares / samples)
    return ExternalTorqueErrors(rows, samples, truth_rms, observer, with_friction, with_network, inside / samples)


def average(values: FloatArray) -> float:
    """Mean over rows, as in the last column of Table 5."""
    return math.fsum(values.tolist()) / values.size


def _columns(inputs: Float32Array, joints: int, joint: int) -> FloatArray:
    values = inputs.astype(float)
    return friction_columns(values[:, joints + joint], values[:, 2 * joints + joint])
