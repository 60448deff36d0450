"""The networks of MOB-Net as an ONNX file, for programs in other languages.

    inputs (time, x), hidden (s,)  ->  torque (time, nv), sigma (time, nv), hidden_out (s,)

``inputs`` are those of :class:`~friction_estimator.learning.signals.Signals`, ``hidden`` the hidden states of all
modules: zero at the start, then ``hidden_out`` of the call before. One call takes one sample or a whole recording.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from friction_estimator.learning.network import SMALLEST_VARIANCE, Model, Network
from friction_estimator.types import FloatArray

_OPSET, _IR_VERSION = 17, 9
"""Widely supported: onnxruntime 1.17 and later."""


def write_onnx(model: Model, path: Path) -> None:
    """Write the networks, single precision; robot, joints and period are among the metadata of the file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    made = _to_onnx(model.networks)
    about = {"robot": model.identity.robot, "joint_names": model.identity.joint_names, "period": model.period}
    helper.set_model_props(made, {"friction_estimator": json.dumps(about)})
    onnx.save(made, path)


def _to_onnx(networks: tuple[Network, ...]) -> onnx.ModelProto:
    """All modules as one graph."""
    graph = _Graph()
    first, torques, sigmas, states = 0, list[str](), list[str](), list[str]()
    for number, network in enumerate(networks):
        torque, sigma, state = graph.add_module(f"module_{number}", network, first)
        torques.append(torque)
        sigmas.append(sigma)
        states.append(state)
        first += network.hidden
    order = np.argsort(np.concatenate([network.module.outputs for network in networks]))
    rows = graph.constant("rows", order.astype(np.int64))
    for name, parts in (("torque", torques), ("sigma", sigmas)):
        graph.add("Gather", [graph.add("Concat", parts, f"{name}_of_modules", axis=1), rows], name, axis=1)
    graph.add("Concat", states, "hidden_out", axis=0)
    columns = 1 + int(max(network.module.inputs.max() for network in networks))
    shapes: dict[str, list[str | int]] = {"inputs": ["time", columns], "hidden": [first]}
    results: dict[str, list[str | int]] = {
        "torque": ["time", order.size],
        "sigma": ["time", order.size],
        "hidden_out": [first],
    }
    made = helper.make_graph(graph.nodes, "mob_net", _values(shapes), _values(results), graph.constants)
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=_IR_VERSION)
    onnx.checker.check_model(model, full_check=True)
    return model


class _Graph:
    """Nodes and constants."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def constant(self, name: str, values: FloatArray | np.ndarray) -> str:
        """Add a constant, in single precision unless it is of whole numbers."""
        kept = values if values.dtype == np.int64 else np.asarray(values, dtype=np.float32)
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(kept), name))
        return name

    def add(self, operator: str, inputs: list[str], output: str, **attributes: int) -> str:
        """Add a node with one output."""
        self.nodes.append(helper.make_node(operator, inputs, [output], **attributes))
        return output

    def add_module(self, name: str, network: Network, first: int) -> tuple[str, str, str]:
        """Add a module whose hidden state begins at ``first``: names of torque, sigma and new hidden state."""
        tensors, s, o = network.tensors, network.hidden, network.module.outputs.size

        def constant(what: str, values: np.ndarray) -> str:
            return self.constant(f"{name}_{what}", values)

        def add(operator: str, inputs: list[str], what: str, **attributes: int) -> str:
            return self.add(operator, inputs, f"{name}_{what}", **attributes)

        x = add("Gather", ["inputs", constant("columns", network.module.inputs.astype(np.int64))], "own", axis=1)
        x = add("Sub", [x, constant("input_mean", tensors["input_mean"])], "centred")
        x = add("Div", [x, constant("input_std", tensors["input_std"])], "scaled")
        x = add("Unsqueeze", [x, constant("batch_axis", np.array([1]))], "batch")
        bounds = [constant("begin", np.array([first])), constant("end", np.array([first + s]))]
        h = add("Slice", ["hidden", *bounds], "hidden")
        h = add("Unsqueeze", [h, constant("state_axes", np.array([0, 1]))], "state")
        weights = [constant(key, _gates(tensors[key]).T[None]) for key in ("w_input", "w_hidden")]
        biases = np.concatenate([_gates(tensors[key][None])[0] for key in ("b_input", "b_hidden")])
        outputs = [f"{name}_states", f"{name}_last"]
        gru = [x, *weights, constant("biases", biases[None]), "", h]
        self.nodes.append(helper.make_node("GRU", gru, outputs, hidden_size=s, linear_before_reset=1))
        axes = constant("direction_and_batch", np.array([1, 2]))
        y = add("Squeeze", [outputs[0], axes], "sequence")
        y = add("MatMul", [y, constant("w_output", tensors["w_output"])], "product")
        y = add("Add", [y, constant("b_output", tensors["b_output"])], "result")
        mean, raw = f"{name}_mean", f"{name}_raw"
        sizes = constant("sizes", np.array([o, o]))
        self.nodes.append(helper.make_node("Split", [y, sizes], [mean, raw], axis=1))
        std = constant("output_std", tensors["output_std"])
        torque = add("Mul", [mean, std], "spread_mean")
        torque = add("Add", [torque, constant("output_mean", tensors["output_mean"])], "torque")
        variance = add("Softplus", [raw], "variance")
        variance = add("Max", [variance, constant("smallest", np.array([SMALLEST_VARIANCE]))], "positive")
        sigma = add("Mul", [add("Sqrt", [variance], "deviation"), std], "sigma")
        last = add("Squeeze", [outputs[1], constant("last_axes", np.array([0, 1]))], "new_hidden")
        return torque, sigma, last


def _gates(values: FloatArray) -> FloatArray:
    """Columns of the gates r, z, n in the order of ONNX: z, r, n."""
    r, z, n = np.split(values, 3, axis=1)
    return np.concatenate((z, r, n), axis=1)


def _values(shapes: dict[str, list[str | int]]) -> list[onnx.ValueInfoProto]:
    return [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items()]
