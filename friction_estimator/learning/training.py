"""Training of MOB-Net with JAX (Lim et al. 2024, section 4.4): Gaussian likelihood, truncated BPTT, Adam.

Each module is trained alone. All data are one long sequence, cut into streams that are learned at the same time. The
hidden state runs on from horizon to horizon to the end of a stream, as it does on the robot; gradients do not. The last
tenth of every stretch of data is for validation.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from safetensors.numpy import save

from friction_estimator.errors import LearningError
from friction_estimator.io.documents import write_atomically
from friction_estimator.io.robot import Robot
from friction_estimator.learning.network import (
    SMALLEST_VARIANCE,
    LimbModule,
    Model,
    Network,
    RobotIdentity,
    limb_modules,
    read_tensors,
    weight_shapes,
)
from friction_estimator.learning.training_data import Float32Array, SignalRecording, fit_friction
from friction_estimator.robot.model import RobotModel

_LIMB_HORIZON, _BASE_HORIZON = 50, 100
"""Horizons of truncated back-propagation, Table 1 [samples]."""
_SEGMENT_HORIZONS = 10
"""Horizons of a segment: that many steps of the optimizer are one call."""
_VALIDATION_SHARE = 0.1
"""Part of the data for validation (section 4.3)."""
_MAX_GRADIENT_NORM = 1.0
"""Norm to which gradients are clipped: the likelihood of a sample far outside of sigma is steep."""
_CONSTANT_STD = 1e-6
"""Inputs that vary less than this are constant, and not scaled up."""

Parameters = dict[str, Any]


@dataclass(frozen=True, slots=True)
class TrainingSettings:
    """Settings of the training; those of the paper are :data:`PAPER`."""

    # hidden units of modules with motor torques among the inputs, and of the others
    leg_hidden: int = 64
    other_hidden: int = 64
    epochs: int = 40  # at most
    patience: int = 10  # epochs without a better validation loss after which a module is finished
    batch: int = 64  # streams
    # learning rate at the start, and after `decay` of the epochs
    first_rate: float = 0.01
    last_rate: float = 0.0005
    decay: float = 0.8  # part of the epochs in which the learning rate falls, linearly
    seed: int = 0  # of weights and order of the data


PAPER = TrainingSettings(150, 200, 200, 200, 64, 0.05, 0.0005, 0.5)
"""Table 1 and section 4.4."""


@dataclass(frozen=True, slots=True)
class Epoch:
    """Progress and errors of one module after an epoch of the training."""

    module: str  # its name
    # epochs of all modules, finished modules counting in full
    done: int
    total: int
    # negative log-likelihood of the scaled outputs (Lim et al. 2024, eq. 22), mean
    training_loss: float
    validation_loss: float
    validation_rmse: float  # root mean square error over all outputs [N m]


def gru_linear(parameters: Parameters, h: jax.Array, x: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Module over scaled inputs x (t, b, i) from the hidden state h (b, s): last h, means and variances (t, b, o)."""
    from_input = x @ parameters["w_input"] + parameters["b_input"]

    def step(h: jax.Array, from_input: jax.Array) -> tuple[jax.Array, jax.Array]:
        from_hidden = h @ parameters["w_hidden"] + parameters["b_hidden"]
        (r, z, n), (hr, hz, hn) = jnp.split(from_input, 3, axis=-1), jnp.split(from_hidden, 3, axis=-1)
        keep = jax.nn.sigmoid(z + hz)
        h = (1.0 - keep) * jnp.tanh(n + jax.nn.sigmoid(r + hr) * hn) + keep * h
        return h, h

    h, states = jax.lax.scan(step, h, from_input)
    mean, y = jnp.split(states @ parameters["w_output"] + parameters["b_output"], 2, axis=-1)
    return h, mean, jnp.maximum(jax.nn.softplus(y), SMALLEST_VARIANCE)


def negative_log_likelihood(mean: jax.Array, variance: jax.Array, target: jax.Array) -> jax.Array:
    """Negative log-likelihood of Gaussian errors (Lim et al. 2024, eq. 22), mean over all outputs and samples.

    Without the factor 1/2 and the constant, which do not move the minimum.

    Parameters
    ----------
    mean, variance : (..., o) outputs of the network, scaled
    target : (..., o) values that they predict, scaled alike
    """
    return jnp.mean(jnp.log(variance) + (mean - target) ** 2 / variance)


def initial_parameters(inputs: int, hidden: int, outputs: int, rng: np.random.Generator) -> Parameters:
    """Random parameters of a module, uniform within plus and minus ``1 / sqrt(hidden)``."""
    bound, shapes = 1.0 / math.sqrt(hidden), weight_shapes(inputs, hidden, outputs)
    return {name: jnp.asarray(rng.uniform(-bound, bound, shape), jnp.float32) for name, shape in shapes.items()}


def train(
    recordings: Sequence[SignalRecording],
    robot: Robot,
    settings: TrainingSettings,
    checkpoint: Path,
    report: Callable[[Epoch], None] | None = None,
) -> Model:
    """Train all modules of a robot.

    Parameters
    ----------
    recordings : of this robot, with the same period
    robot : whose URDF is the nominal model
    settings : of the training
    checkpoint : file that is written after each epoch; an interrupted training of the same data and settings continues
        from it with the same result
    report : called after each epoch

    Raises
    ------
    LearningError
        When there are too few samples, or the checkpoint is of another training.
    """
    periods = [recording.period for recording in recordings]
    if max(periods) > 1.1 * min(periods):
        raise LearningError(
            f"the recordings have joint states every {min(periods):g} to {max(periods):g} s: train with recordings of "
            "one rate"
        )
    modules = limb_modules(RobotModel(robot.config, robot.urdf_xml))
    identity = RobotIdentity.from_robot(robot)
    purpose = {"settings": dataclasses.asdict(settings), "data": _digest(recordings), "robot": identity.urdf_sha256}
    state = _Checkpoint(checkpoint, purpose)
    networks, results = [], []
    for number, module in enumerate(modules):
        trainer = _ModuleTrainer(module, number, recordings, settings)
        trainer.run(state, len(modules), report)
        networks.append(trainer.network())
        results.append({"module": module.name, **trainer.best})
    samples = sum(len(recording) for recording in recordings)
    training = {"settings": purpose["settings"], "samples": samples, "results": results}
    friction = fit_friction(recordings, len(identity.joint_names))
    lowest, highest = (np.array([limit(one.inputs, axis=0) for one in recordings]) for limit in (np.min, np.max))
    input_range = np.stack((lowest.min(axis=0), highest.max(axis=0))).astype(float)
    return Model(identity, float(np.median(periods)), tuple(networks), input_range, friction, training)


class _ModuleTrainer:
    """Training of one module: data, parameters and optimizer."""

    def __init__(
        self, module: LimbModule, number: int, recordings: Sequence[SignalRecording], settings: TrainingSettings
    ) -> None:
        self._module, self._number, self._settings = module, number, settings
        self._horizon = _BASE_HORIZON if module.is_base else _LIMB_HORIZON
        length = _SEGMENT_HORIZONS * self._horizon
        pieces = [(one.inputs[p][:, module.inputs], one.target[p][:, module.outputs]) for one in recordings
                  for p in one.pieces()]  # fmt: skip
        cuts = [round((1.0 - _VALIDATION_SHARE) * len(x)) for x, _ in pieces]
        inputs = np.concatenate([x[:cut] for (x, _), cut in zip(pieces, cuts, strict=True)])
        targets = np.concatenate([y[:cut] for (_, y), cut in zip(pieces, cuts, strict=True)])
        self._statistics = {
            "input_mean": inputs.mean(axis=0, dtype=float),
            "input_std": _scale(inputs),
            "output_mean": targets.mean(axis=0, dtype=float),
            "output_std": _scale(targets),
        }
        scaled = [(self._scaled(x, "input"), self._scaled(y, "output")) for x, y in pieces]
        self._training = [(x[:c], y[:c]) for (x, y), c in zip(scaled, cuts, strict=True) if c >= length]
        validation = [(x[c:], y[c:]) for (x, y), c in zip(scaled, cuts, strict=True)]
        self._validation = _segments(validation, length)
        if not self._training or not len(self._validation[0]):
            raise LearningError(
                f"too few samples to train the limb {module.name!r}: it needs {length / _VALIDATION_SHARE:.0f} of them "
                "without a gap; record a longer walk"
            )
        hidden = settings.leg_hidden if module.has_torque else settings.other_hidden
        rng = np.random.default_rng([settings.seed, number])
        self._parameters = initial_parameters(module.inputs.size, hidden, module.outputs.size, rng)
        batches = max(sum(len(x) for x, _ in self._training) // (length * settings.batch), 1)
        updates = round(settings.decay * settings.epochs * batches * _SEGMENT_HORIZONS)
        self._optimizer = optax.chain(
            optax.clip_by_global_norm(_MAX_GRADIENT_NORM),
            optax.adam(optax.linear_schedule(settings.first_rate, settings.last_rate, updates)),
        )
        self._optimizer_state = self._optimizer.init(self._parameters)
        self._best_parameters = self._parameters
        self.best: dict[str, Any] = {"epoch": 0, "validation_loss": math.inf, "validation_rmse": math.inf}

    def run(self, state: _Checkpoint, modules: int, report: Callable[[Epoch], None] | None) -> None:
        """Train until the last epoch, or until the validation loss falls no more."""
        first = state.restore(self, self._number)
        for epoch in range(first, self._settings.epochs):
            if epoch - self.best["epoch"] >= self._settings.patience:
                break
            loss = self._epoch(epoch)
            validation, rmse = self._validate()
            if not math.isfinite(loss):
                raise LearningError(f"the training of {self._module.name} diverged: choose a smaller learning rate")
            if validation < self.best["validation_loss"]:
                self.best = {"epoch": epoch + 1, "validation_loss": validation, "validation_rmse": rmse}
                self._best_parameters = self._parameters
            state.save(self, self._number, epoch + 1)
            if report is not None:
                done, total = self._number * self._settings.epochs + epoch + 1, modules * self._settings.epochs
                report(Epoch(self._module.name, done, total, loss, validation, rmse))

    def network(self) -> Network:
        """The module with the best parameters so far."""
        weights = {name: np.asarray(values, dtype=np.float64) for name, values in self._best_parameters.items()}
        return Network(self._module, {**weights, **self._statistics})

    def tensors(self) -> dict[str, Any]:
        """All that changes in an epoch."""
        leaves = jax.tree.leaves((self._parameters, self._best_parameters, self._optimizer_state))
        return {str(number): np.asarray(leaf) for number, leaf in enumerate(leaves)}

    def load(self, tensors: dict[str, Any], best: dict[str, Any]) -> None:
        """Continue from :meth:`tensors` and ``best``."""
        everything = (self._parameters, self._best_parameters, self._optimizer_state)
        leaves, structure = jax.tree.flatten(everything)
        values = [jnp.asarray(tensors[str(number)], leaf.dtype) for number, leaf in enumerate(leaves)]
        self._parameters, self._best_parameters, self._optimizer_state = jax.tree.unflatten(structure, values)
        self.best = best

    def _epoch(self, epoch: int) -> float:
        """One pass over the data: pieces in random order, one long sequence from a random sample on, as streams."""
        rng = np.random.default_rng([self._settings.seed, self._number, epoch, 1])
        order, length = rng.permutation(len(self._training)), _SEGMENT_HORIZONS * self._horizon
        samples = sum(len(x) for x, _ in self._training)
        streams = min(self._settings.batch, samples // length)
        segments, first = samples // (streams * length), int(rng.integers(samples))
        used = streams * segments * length
        x, y = (np.concatenate([self._training[k][part] for k in order]) for part in (0, 1))
        x, y = (np.roll(part, -first, axis=0)[:used].reshape(streams, segments * length, -1) for part in (x, y))
        h, losses = jnp.zeros((streams, self._parameters["w_hidden"].shape[0]), jnp.float32), []
        for segment in zip(np.split(x, segments, axis=1), np.split(y, segments, axis=1), strict=True):
            self._parameters, self._optimizer_state, h, loss = train_segments(
                self._optimizer, self._horizon, self._parameters, self._optimizer_state, h, *segment
            )
            losses.append(loss)
        return float(np.mean(losses))

    def _validate(self) -> tuple[float, float]:
        """Loss, and root mean square error over all outputs [N m], without the first horizon of each segment."""
        x, y = self._validation
        loss, squares = _validate_segments(self._parameters, x, y, self._horizon)
        return float(loss), float(np.sqrt(np.mean(np.asarray(squares) * self._statistics["output_std"] ** 2)))

    def _scaled(self, values: Float32Array, name: str) -> Float32Array:
        mean, std = self._statistics[f"{name}_mean"], self._statistics[f"{name}_std"]
        return ((values - mean) / std).astype(np.float32)


@partial(jax.jit, static_argnums=(0, 1))
def train_segments(
    optimizer: optax.GradientTransformation,
    horizon: int,
    parameters: Parameters,
    optimizer_state: Any,
    h: jax.Array,
    x: jax.Array,
    y: jax.Array,
) -> tuple[Parameters, Any, jax.Array, jax.Array]:
    """Train on one segment of each stream by truncated backpropagation through time: one step a horizon.

    Parameters
    ----------
    optimizer : of optax
    horizon : samples between two steps of the optimizer; it divides t
    parameters, optimizer_state : before the first step
    h : (b, s) hidden states of b streams at the start of the segments
    x, y : (b, t, i), (b, t, o) scaled inputs and targets of t samples

    Returns
    -------
    Parameters, state of the optimizer and hidden states (b, s) at the end, and the mean of the losses.
    """

    def loss_of(parameters: Parameters, h: jax.Array, x: jax.Array, y: jax.Array) -> tuple[jax.Array, jax.Array]:
        h, mean, variance = gru_linear(parameters, h, x)
        return negative_log_likelihood(mean, variance, y), h

    def step(carry: Any, chunk: Any) -> tuple[Any, jax.Array]:
        parameters, optimizer_state, h = carry
        (loss, h), gradient = jax.value_and_grad(loss_of, has_aux=True)(parameters, h, *chunk)
        update, optimizer_state = optimizer.update(gradient, optimizer_state)
        return (optax.apply_updates(parameters, update), optimizer_state, h), loss

    chunks = [jnp.moveaxis(values, 0, 1).reshape(-1, horizon, len(values), values.shape[2]) for values in (x, y)]
    (parameters, optimizer_state, h), losses = jax.lax.scan(step, (parameters, optimizer_state, h), tuple(chunks))
    return parameters, optimizer_state, h, jnp.mean(losses)


@partial(jax.jit, static_argnums=3)
def _validate_segments(parameters: Parameters, x: jax.Array, y: jax.Array, skip: int) -> tuple[jax.Array, jax.Array]:
    """Loss, and mean square error of each output (o,), of segments (b, t, i) without the first samples."""
    x, y = jnp.moveaxis(x, 0, 1), jnp.moveaxis(y, 0, 1)
    h = jnp.zeros((x.shape[1], parameters["w_hidden"].shape[0]), x.dtype)
    _, mean, variance = gru_linear(parameters, h, x)
    mean, variance, y = mean[skip:], variance[skip:], y[skip:]
    return negative_log_likelihood(mean, variance, y), jnp.mean((mean - y) ** 2, axis=(0, 1))


class _Checkpoint:
    """State of an unfinished training on disk."""

    def __init__(self, path: Path, purpose: dict[str, Any]) -> None:
        self._path, self._purpose = path, purpose
        self._finished: dict[str, Any] = {}
        self._epochs: list[int] = []
        self._best: list[dict[str, Any]] = []
        if path.exists():
            document, tensors = read_tensors(path)
            if document.get("purpose") != json.loads(json.dumps(purpose)):
                raise LearningError(f"{path} is of a training with other data or settings: delete it to begin anew")
            self._finished, self._epochs, self._best = dict(tensors), document["epochs"], document["best"]

    def restore(self, trainer: _ModuleTrainer, number: int) -> int:
        """Put a module where it was; return its finished epochs."""
        if number >= len(self._epochs):
            return 0
        prefix = f"{number}."
        own = {name.removeprefix(prefix): v for name, v in self._finished.items() if name.startswith(prefix)}
        trainer.load(own, self._best[number])
        return self._epochs[number]

    def save(self, trainer: _ModuleTrainer, number: int, epochs: int) -> None:
        """Write the state after an epoch."""
        self._finished |= {f"{number}.{name}": values for name, values in trainer.tensors().items()}
        self._epochs[number:], self._best[number:] = [epochs], [trainer.best]
        document = {"purpose": self._purpose, "epochs": self._epochs, "best": self._best}
        write_atomically(self._path, save(self._finished, {"friction_estimator": json.dumps(document)}))


def _segments(pieces: Sequence[tuple[Float32Array, ...]], length: int) -> tuple[Float32Array, ...]:
    """Segments (b, length, ...) of all pieces."""
    whole = ([values[: len(values) // length * length] for values in part] for part in zip(*pieces, strict=True))
    return tuple(np.concatenate(part).reshape(-1, length, part[0].shape[1]) for part in whole)


def _scale(values: Float32Array) -> np.ndarray:
    """Standard deviation of each column, one where it is constant."""
    std = values.std(axis=0, dtype=float)
    return np.where(std > _CONSTANT_STD, std, 1.0)


def _digest(recordings: Sequence[SignalRecording]) -> str:
    """Hash of all samples."""
    digest = hashlib.sha256()
    for recording in recordings:
        digest.update(recording.inputs.tobytes())
        digest.update(recording.residual.tobytes())
    return digest.hexdigest()
