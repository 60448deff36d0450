"""External torque of MOB-Net, compared with that of the momentum observer alone and with a friction model (Table 5).

The truth is the low-passed torque of the true foot wrenches in simulation, and of the measured ones of a real robot.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from friction_estimator.learning.external_torque import Fusion
from friction_estimator.learning.network import Model
from friction_estimator.learning.recording import Float32Array, SignalRecording
from friction_estimator.types import FloatArray, IntArray

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
    limbs : rows of each limb, by its name
    samples : number of samples
    truth_rms : (nv,) root mean square of the true external torque
    rms : (nv,) root mean square error of each method: the momentum observer alone (MOB), with a friction model of
        velocity and motor torque fitted to the training data (MOB-fric, after Lee et al. 2015), and MOB-Net; where the
        friction stage has run, also its observer, which needs the foot sensors, and both together (fused), NaN in the
        rows of the base
    coverage : (nv,) part of the samples whose error is below 1.96 sigma, of the methods with a sigma; .95 is consistent
    """

    rows: tuple[str, ...]
    limbs: Mapping[str, IntArray]
    samples: int
    truth_rms: FloatArray
    rms: Mapping[str, FloatArray]
    coverage: Mapping[str, FloatArray]


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
    truths, errors, sigmas = list[FloatArray](), dict[str, list[FloatArray]](), dict[str, list[FloatArray]]()
    for recording in recordings:
        truth = recording.external if recording.true_external is None else recording.true_external
        torque, sigma = predicted(model, recording)
        friction = np.zeros((len(recording), model.rows))
        for joint in range(joints):
            columns = _columns(recording.inputs, joints, joint)
            friction[:, joint - joints] = -columns @ model.friction[joint]
        error = (recording.residual - truth).astype(float)
        of_methods = {"MOB": error, "MOB-fric": error - friction, "MOB-Net": error - torque}
        with_sigma = {"MOB-Net": sigma}
        if recording.observed is not None:
            observed = _with_observer(recording.observed.astype(float), error - torque, sigma, recording.period)
            of_methods |= {name: one[0] for name, one in observed.items()}
            with_sigma |= {name: one[1] for name, one in observed.items()}
        truths.append(truth.astype(float))
        for name, values in of_methods.items():
            errors.setdefault(name, []).append(values)
        for name, values in with_sigma.items():
            sigmas.setdefault(name, []).append(values)
    base = ("base force x", "base force y", "base force z", "base moment x", "base moment y", "base moment z")
    rows = (*base[: model.rows - joints], *model.identity.joint_names)
    every = {name: np.concatenate(values) for name, values in errors.items()}
    rms = {name: _mean(error**2) ** 0.5 for name, error in every.items()}
    inside = {name: np.abs(every[name]) < 1.96 * np.concatenate(values) for name, values in sigmas.items()}
    coverage = {name: _mean(np.where(np.isnan(every[name]), np.nan, values)) for name, values in inside.items()}
    truth_rms = _mean(np.concatenate(truths) ** 2) ** 0.5
    limbs = {one.module.name: one.module.outputs for one in model.networks if not one.module.is_base}
    return ExternalTorqueErrors(rows, limbs, sum(map(len, truths)), truth_rms, rms, coverage)


def _mean(values: FloatArray) -> FloatArray:
    """Mean of each column over the samples in which it is known; NaN where there is none."""
    known = np.isfinite(values)
    count = known.sum(axis=0)
    return np.where(count, np.where(known, values, 0.0).sum(axis=0) / np.maximum(count, 1), np.nan)


def _with_observer(
    observed: FloatArray, error: FloatArray, sigma: FloatArray, period: float
) -> dict[str, tuple[FloatArray, FloatArray]]:
    """Errors and sigmas (m, nv) of the friction stage and of both together; nothing but the ground touches the robot.

    Parameters
    ----------
    observed : (m, 2 n) external torque of the friction stage and its sigma
    error, sigma : (m, nv) of MOB-Net
    period : between samples [s]
    """
    n, rows = observed.shape[1] // 2, error.shape[1]
    torque, torque_sigma, of_network, network_sigma = (
        np.ascontiguousarray(part) for part in (observed[:, :n], observed[:, n:], error[:, -n:], sigma[:, -n:])
    )
    fusion, fused = Fusion(n), np.empty((2, *torque.shape))
    for k in range(len(error)):
        fused[:, k] = fusion.step((torque[k], torque_sigma[k]), (of_network[k], network_sigma[k]), period)
    pairs = {"observer": (torque, torque_sigma), "fused": (fused[0], fused[1])}
    unknown = np.full((len(error), rows - n), np.nan)
    return {name: (np.hstack((unknown, one)), np.hstack((unknown, other))) for name, (one, other) in pairs.items()}


def average(values: FloatArray) -> float:
    """Mean over rows, as in the last column of Table 5."""
    return math.fsum(values.tolist()) / values.size


def _columns(inputs: Float32Array, joints: int, joint: int) -> FloatArray:
    values = inputs.astype(float)
    return friction_columns(values[:, joints + joint], values[:, 2 * joints + joint])
