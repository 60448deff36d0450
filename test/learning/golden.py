"""A tiny MOB-Net with random weights, and what JAX makes of it; ``python -m test.learning.golden`` writes the file."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from friction_estimator.learning.network import LimbModule, Network

FILE = Path(__file__).with_name("golden.npz")
ROWS, SAMPLES = 5, 40


def networks() -> tuple[Network, ...]:
    """Two modules whose inputs overlap, and which cover rows 0, 1, 3 and 2, 4."""
    return (
        random_network(0, LimbModule("one", np.array([3, 0, 1]), np.array([0, 2, 5, 6]))),
        random_network(1, LimbModule("two", np.array([4, 2]), np.array([6, 1, 4]))),
    )


def inputs() -> np.ndarray:
    return 10.0 * np.random.default_rng(9).standard_normal((SAMPLES, 7))


def random_network(seed: int, module: LimbModule, hidden: int = 6) -> Network:
    """Random weights and statistics."""
    rng = np.random.default_rng(seed)
    i, o = module.inputs.size, module.outputs.size
    weights = {
        "w_input": (i, 3 * hidden), "b_input": (3 * hidden,), "w_hidden": (hidden, 3 * hidden),
        "b_hidden": (3 * hidden,), "w_output": (hidden, 2 * o), "b_output": (2 * o,),
        "input_mean": (i,), "output_mean": (o,),
    }  # fmt: skip
    tensors = {name: rng.standard_normal(shape) for name, shape in weights.items()}
    tensors |= {"input_std": rng.uniform(5.0, 20.0, i), "output_std": rng.uniform(5.0, 20.0, o)}
    return Network(module, tensors)


def computed_by_jax() -> tuple[np.ndarray, np.ndarray]:
    """Torque and sigma (SAMPLES, ROWS) in double precision."""
    import jax

    from friction_estimator.learning.training import gru_linear

    torque, sigma = np.full((2, SAMPLES, ROWS), np.nan)
    with jax.enable_x64(True):
        for network in networks():
            t, module = network.tensors, network.module
            x = (inputs()[:, module.inputs] - t["input_mean"]) / t["input_std"]
            _, mean, variance = gru_linear(dict(t), np.zeros((1, network.hidden)), x[:, None])
            torque[:, module.outputs] = t["output_mean"] + t["output_std"] * np.asarray(mean)[:, 0]
            sigma[:, module.outputs] = t["output_std"] * np.sqrt(np.asarray(variance)[:, 0])
    return torque, sigma


if __name__ == "__main__":
    computed = computed_by_jax()
    np.savez(FILE, torque=computed[0], sigma=computed[1])
