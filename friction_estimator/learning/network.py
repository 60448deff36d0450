"""The networks of MOB-Net at work: the limbs of a robot, one compiled kernel for all limb modules, and their file.

The mass matrix couples a limb with its ancestors, its descendants and the base only, so the module of a limb takes
these joints alone (Lim et al. 2024, section 4.1, Table 1). Limbs are the unbranched chains of the tree: legs, waist,
arms, neck. Each module is GRU - linear (Table 1, Fig. 2):

    r = s(W_ir x + b_ir + W_hr h + b_hr),  z with W_iz etc.,  n = tanh(W_in x + b_in + r (W_hn h + b_hn))
    h = (1 - z) n + z h,   [mean, y] = W h + b,   variance = softplus(y)

with inputs and outputs scaled by their statistics in the training data. The file is one ``.safetensors`` with a JSON
description among its metadata; reading it runs no code.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from friction_estimator.errors import LearningError
from friction_estimator.io.documents import write_atomically
from friction_estimator.io.robot import Robot
from friction_estimator.kernels.compiler import entry_point, kernel
from friction_estimator.learning.signals import GAIN
from friction_estimator.robot.model import RobotModel
from friction_estimator.types import BoolArray, FloatArray, IndexMatrix, Indices, IntArray, Vector

_MODEL_VERSION = 1
"""Of files with models or signals; others are refused."""


@dataclass(frozen=True, slots=True)
class RobotIdentity:
    """Robot that a file with a model or signals belongs to."""

    version: int  # of signals and files
    robot: str  # name of the robot, for people
    urdf_sha256: str  # hash of the text of the URDF
    joint_names: tuple[str, ...]  # (n) order of the joints
    foot_frames: tuple[str, ...]  # (k) links of the feet
    imu_frame: str  # link of the IMU, empty for a fixed base
    gain: float  # K_0 of the residual [rad/s]

    @classmethod
    def from_robot(cls, robot: Robot) -> RobotIdentity:
        """Identity of a robot."""
        config = robot.config
        return cls(
            _MODEL_VERSION,
            robot.name,
            hashlib.sha256(robot.urdf_xml.encode()).hexdigest(),
            RobotModel(config, robot.urdf_xml).joint_names,
            tuple(foot.frame for foot in config.feet),
            "" if config.robot.fixed_base else config.imu.frame,
            GAIN,
        )

    def check(self, written: Any, what: str) -> None:
        """Raise LearningError with the reason when ``what`` has not this identity written in it, but another one."""
        values = written if isinstance(written, Mapping) else {}
        if (version := values.get("version")) != _MODEL_VERSION:
            raise LearningError(
                f"{what} has version {version}, this program reads version {_MODEL_VERSION}: make it anew"
            )
        for name, own in dataclasses.asdict(self).items():
            other = values.get(name)
            if name != "robot" and other != (list(own) if isinstance(own, tuple) else own):
                raise LearningError(
                    f"{what} is not for this robot ({self.robot!r}): its {name} is {other}, not {own}; make it anew"
                )


_BASE_INPUTS = 12
"""Numbers of U^V in eq. 17: two columns of the rotation matrix, angular velocity, specific force."""
_VIRTUAL = "virtual joints"
"""Name of the module of the base."""


@dataclass(frozen=True, slots=True)
class LimbModule:
    """Which joints one network of MOB-Net takes as inputs and gives torques for."""

    name: str  # first and last joint of the limb, or `virtual joints`
    outputs: IntArray  # (o,) rows of the generalised torque
    inputs: IntArray  # (i,) columns of inputs
    has_torque: bool = False  # whether motor torques are among the inputs: the limb carries a foot

    @property
    def is_base(self) -> bool:
        """Whether this is the module of the virtual joints."""
        return self.name == _VIRTUAL


def limb_modules(robot: RobotModel) -> tuple[LimbModule, ...]:
    """Modules of a robot: its limbs in the order of their first joints, then the virtual joints of a floating base.

    Inputs of a limb are Q (position and velocity) of its joints and all coupled ones, T (motor torque) of its joints if
    they carry a foot, and U^V; those of the virtual joints are Q of all joints and U^V (Table 1).
    """
    n, base = len(robot.joint_names), robot.base_dofs
    carries_foot = np.asarray(robot.limb.any(axis=0))
    on_base = np.arange(3 * n, 3 * n + _BASE_INPUTS if base else 3 * n)
    modules = []
    for joints in chains(robot.coupled):
        moved = np.flatnonzero(robot.coupled[joints[0]])
        torque = 2 * n + joints[carries_foot[joints]]
        inputs = np.concatenate((moved, n + moved, torque, on_base))
        modules.append(LimbModule(chain_name(robot.joint_names, joints), base + joints, inputs, torque.size > 0))
    if base:
        modules.append(LimbModule(_VIRTUAL, np.arange(base), np.concatenate((np.arange(2 * n), on_base))))
    return tuple(modules)


def chains(coupled: BoolArray) -> list[IntArray]:
    """Joints of each unbranched chain of the tree, from the base outward.

    ``coupled`` (n, n) is True where the mass matrix couples two joints, and equal for all joints of one chain. Joints
    are in the order of the tree, parents first.
    """
    _, first, chain = np.unique(coupled, axis=0, return_index=True, return_inverse=True)
    return [np.flatnonzero(chain.ravel() == one) for one in np.argsort(first)]


def chain_name(joint_names: Sequence[str], joints: IntArray) -> str:
    """First and last joint of a chain."""
    first, last = joint_names[joints[0]], joint_names[joints[-1]]
    return first if first == last else f"{first} to {last}"


SMALLEST_VARIANCE = 1e-12
"""Of scaled outputs: the standard deviation is clipped at 1e-6 (section 4.4)."""
_WEIGHTS = ("w_input", "b_input", "w_hidden", "b_hidden", "w_output", "b_output")
_STATISTICS = ("input_mean", "input_std", "output_mean", "output_std")
"""Tensors of a module: learned ones, and statistics of the training data."""
_WHOLE = ("input_range", "friction")
"""Tensors of the whole robot."""
_KEY = "friction_estimator"
"""Key of the description among the metadata of a file."""


@kernel
def _logistic(value: float) -> float:
    return 1.0 / (1.0 + math.exp(-value)) if value > -700.0 else 0.0


@kernel
def _add_products(result: FloatArray, values: FloatArray, weights: FloatArray, first: int) -> int:
    """Add ``values @ W`` to ``result``, W being stored in ``weights`` from ``first`` on; return where it ends."""
    n = result.size
    for i in range(values.size):
        value, row = values[i], weights[first + i * n : first + (i + 1) * n]
        for j in range(n):
            result[j] += value * row[j]
    return first + values.size * n


@entry_point
def step_networks(
    x: Vector,
    weights: Vector,
    inputs: Indices,
    outputs: Indices,
    sizes: IndexMatrix,
    hidden: Vector,
    torque: Vector,
    sigma: Vector,
) -> None:
    """Uncertainty torque of one sample by the networks of all modules; hidden state in place.

    Parameters
    ----------
    x : inputs of the whole robot
    weights : of all modules one after the other: statistics, then W_i, b_i, W_h, b_h, W, b, matrices by inputs
    inputs, outputs : of all modules one after the other, columns of x and rows of the torque
    sizes : (modules, 3) number of inputs, of hidden units and of outputs
    hidden : hidden states of all modules
    torque, sigma : (nv,) output: uncertainty torque and its standard deviation [N, N m]
    """
    at, first_input, first_output, first_hidden = 0, 0, 0, 0
    for module in range(sizes.shape[0]):
        n, size, rows = sizes[module, 0], sizes[module, 1], sizes[module, 2]
        values = np.empty(n)
        for i in range(n):
            values[i] = (x[inputs[first_input + i]] - weights[at + i]) / weights[at + n + i]
        at += 2 * n
        mean, spread = weights[at : at + rows], weights[at + rows : at + 2 * rows]
        at += 2 * rows
        h = hidden[first_hidden : first_hidden + size]
        from_input, from_hidden, result = np.zeros(3 * size), np.zeros(3 * size), np.zeros(2 * rows)
        at = _add_products(from_input, values, weights, at)
        for i in range(3 * size):
            from_input[i] += weights[at + i]
        at = _add_products(from_hidden, h, weights, at + 3 * size)
        for i in range(3 * size):
            from_hidden[i] += weights[at + i]
        at += 3 * size
        for i in range(size):
            reset = _logistic(from_input[i] + from_hidden[i])
            keep = _logistic(from_input[size + i] + from_hidden[size + i])
            new = math.tanh(from_input[2 * size + i] + reset * from_hidden[2 * size + i])
            h[i] = (1.0 - keep) * new + keep * h[i]
        at = _add_products(result, h, weights, at)
        for i in range(rows):
            row, y = outputs[first_output + i], result[rows + i] + weights[at + rows + i]
            variance = max(y, 0.0) + math.log1p(math.exp(-abs(y)))
            torque[row] = mean[i] + spread[i] * (result[i] + weights[at + i])
            sigma[row] = spread[i] * math.sqrt(max(variance, SMALLEST_VARIANCE))
        at += 2 * rows
        first_input, first_output, first_hidden = first_input + n, first_output + rows, first_hidden + size


@dataclass(frozen=True, slots=True)
class Network:
    """One trained network of MOB-Net, see :class:`LimbModule`."""

    module: LimbModule  # its place in the robot
    # `w_input` (i, 3 s), `b_input` (3 s,), `w_hidden` (s, 3 s), `b_hidden` (3 s,), `w_output` (s, 2 o),
    # `b_output` (2 o,), gates in the order r, z, n and outputs mean, y; `input_mean`, `input_std` (i,),
    # `output_mean`, `output_std` (o,) of the training data
    tensors: Mapping[str, FloatArray]

    @property
    def hidden(self) -> int:
        """Hidden units s."""
        return self.tensors["w_hidden"].shape[0]

    @property
    def weight_count(self) -> int:
        """Learned numbers, as in Table 1."""
        return sum(self.tensors[name].size for name in _WEIGHTS)

    def packed(self) -> FloatArray:
        """All tensors in the order of :func:`step_networks`."""
        return np.concatenate([np.ravel(self.tensors[name]) for name in (*_STATISTICS, *_WEIGHTS)]).astype(float)


class MobNet:
    """Uncertainty torque of a robot, sample by sample.

    Parameters
    ----------
    networks : one of each limb module
    rows : nv, of the generalised torque
    """

    def __init__(self, networks: Sequence[Network], rows: int) -> None:
        self._weights = np.concatenate([network.packed() for network in networks])
        self._inputs = np.concatenate([network.module.inputs for network in networks]).astype(np.int64)
        self._outputs = np.concatenate([network.module.outputs for network in networks]).astype(np.int64)
        sizes = [(one.module.inputs.size, one.hidden, one.module.outputs.size) for one in networks]
        self._sizes = np.array(sizes, dtype=np.int64)
        self._rows = rows
        self.reset()

    def reset(self) -> None:
        """Forget the samples so far."""
        self._hidden = np.zeros(int(self._sizes[:, 1].sum()))

    def step(self, inputs: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Uncertainty torque and its standard deviation, (nv,), from the inputs of one sample; NaN without a module."""
        torque, sigma = np.full(self._rows, np.nan), np.full(self._rows, np.nan)
        step_networks(inputs, self._weights, self._inputs, self._outputs, self._sizes, self._hidden, torque, sigma)
        return torque, sigma


@dataclass(frozen=True, slots=True)
class Model:
    """A trained MOB-Net with what belongs to it."""

    identity: RobotIdentity  # of the robot
    period: float  # between samples of the training data [s]
    networks: tuple[Network, ...]  # one of each limb module
    input_range: FloatArray  # (2, x) smallest and largest inputs of the training data
    friction: FloatArray  # (n, p) friction model of the same data, for comparison (friction_columns)
    training: Mapping[str, Any]  # settings, data and errors of the training, for people

    @property
    def rows(self) -> int:
        """Rows nv of the generalised torque."""
        return sum(network.module.outputs.size for network in self.networks)

    def estimator(self) -> MobNet:
        """New :class:`MobNet` of these networks, before its first sample."""
        return MobNet(self.networks, self.rows)

    def save(self, path: Path) -> None:
        """Write the file. An interruption leaves the old one."""
        from safetensors.numpy import save

        tensors = {
            f"{number}.{name}": np.ascontiguousarray(values, dtype=np.float32 if name in _WEIGHTS else np.float64)
            for number, network in enumerate(self.networks)
            for name, values in network.tensors.items()
        }
        tensors |= {name: np.ascontiguousarray(getattr(self, name)) for name in _WHOLE}
        modules = [
            {"name": m.name, "outputs": m.outputs.tolist(), "inputs": m.inputs.tolist()}
            for m in (network.module for network in self.networks)
        ]
        document = {"identity": dataclasses.asdict(self.identity), "period": self.period, "modules": modules}
        document["training"] = dict(self.training)
        write_atomically(path, save(tensors, {_KEY: json.dumps(document)}))


def load_model(path: Path, robot: Robot) -> Model:
    """Read a model of this robot.

    Raises
    ------
    LearningError
        When it cannot be read, or is of another version, robot or URDF; the message has the reason.
    """
    document, tensors = read_tensors(path)
    try:
        identity = RobotIdentity.from_robot(robot)
        identity.check(document["identity"], f"the model {path}")
        modules = limb_modules(RobotModel(robot.config, robot.urdf_xml))
        written = [(one["name"], one["outputs"], one["inputs"]) for one in document["modules"]]
        if written != [(one.name, one.outputs.tolist(), one.inputs.tolist()) for one in modules]:
            raise LearningError(
                f"the model {path} has the limbs {[name for name, *_ in written]}, whose inputs or outputs are not "
                f"those of the robot's limbs {[one.name for one in modules]}: train the model anew"
            )
        networks = tuple(
            Network(module, {name: tensors[f"{number}.{name}"] for name in (*_WEIGHTS, *_STATISTICS)})
            for number, module in enumerate(modules)
        )
        for network in networks:
            _check_shapes(network, path)
        input_range, friction = (tensors[name] for name in _WHOLE)
        return Model(identity, float(document["period"]), networks, input_range, friction, document["training"])
    except (KeyError, TypeError, ValueError) as error:
        raise LearningError(
            f"{path} is not a MOB-Net model: {error!r}; write one with `friction_estimator train`"
        ) from None


def read_tensors(path: Path) -> tuple[dict[str, Any], dict[str, FloatArray]]:
    """Description and tensors of a ``.safetensors`` of this package. Raises LearningError when it is none."""
    if not path.is_file():
        raise LearningError(f"there is no model at {path}: write one with `friction_estimator train`")
    try:
        from safetensors import SafetensorError, safe_open
    except ModuleNotFoundError:
        raise LearningError("models are read by the Python package 'safetensors': pip install safetensors") from None
    try:
        with safe_open(path, framework="np") as stream:
            document = json.loads((stream.metadata() or {})[_KEY])
            names = stream.keys()
            return document, {name: stream.get_tensor(name) for name in names}
    except (OSError, SafetensorError, KeyError, ValueError) as error:
        raise LearningError(
            f"{path} is not a MOB-Net model: {error}; write one with `friction_estimator train`"
        ) from None


def weight_shapes(inputs: int, hidden: int, outputs: int) -> dict[str, tuple[int, ...]]:
    """Shapes of the learned tensors of a module, see :class:`Network`."""
    i, s, o = inputs, 3 * hidden, 2 * outputs
    shapes = (i, s), (s,), (hidden, s), (s,), (hidden, o), (o,)
    return dict(zip(_WEIGHTS, shapes, strict=True))


def _check_shapes(network: Network, path: Path) -> None:
    i, o = network.module.inputs.size, network.module.outputs.size
    statistics = dict(zip(_STATISTICS, ((i,), (i,), (o,), (o,)), strict=True))
    for name, shape in {**weight_shapes(i, network.hidden, o), **statistics}.items():
        values = network.tensors[name]
        if values.shape != shape or not np.isfinite(values).all():
            raise LearningError(
                f"{path}: {name} of {network.module.name} has the shape {values.shape}, or is not finite; "
                f"{shape} finite numbers are needed: copy the file again, or train again"
            )
