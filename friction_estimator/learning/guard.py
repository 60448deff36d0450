"""Whether the networks of MOB-Net have learned from motions like the present one: inputs, rate and errors.

A motion can have all inputs within the range of the training data and still be unknown: standing, another payload,
friction of a cold robot. Then the external torque is larger than its sigma for seconds, and not for the tenths of a
second of a collision:

    m_i = <min((external_i / sigma_i)^2, 9)>,  mean over 5 s;   a limb is not known while the mean of its m_i exceeds 2
"""

from __future__ import annotations

import math

import numpy as np

from friction_estimator.compiled import kernel
from friction_estimator.estimation.health import Health
from friction_estimator.learning.network import Model
from friction_estimator.types import FloatArray, IntArray

MARGIN = 0.25
"""An input may be outside the range of the training data by this part of the range."""
_LEAST_MARGIN = 1e-3
"""Margin of inputs that were constant [rad, rad/s, N m, m/s^2]."""
_LARGEST_RATE_RATIO = 1.1
"""The networks count in samples: the rate of the joint states may differ from that of the training data by this."""
_AVERAGED = 100
"""Samples over which the rate is averaged."""
_MEMORY = 5.0
"""Time over which errors are compared with sigma [s]."""
_CLIPPED = 9.0
"""Largest squared ratio that counts: a collision has larger ones for a short time."""
LARGEST_MEAN = 2.0
"""Of the squared ratios of a limb, which are one where sigma is right. The largest are 1.2 in minutes of walking, 1.7
with a push every 3 s, 2.4 with a quarter more mass, and 4 while standing after a training with walks only."""


@kernel("V V V f8 I I V V")
def step_consistency(
    residual: FloatArray,
    uncertainty: FloatArray,
    sigma: FloatArray,
    part: float,
    outputs: IntArray,
    counts: IntArray,
    squares: FloatArray,
    external: FloatArray,
) -> int:
    """External torque (nv,), NaN in the rows of modules that are not consistent.

    Parameters
    ----------
    residual, uncertainty, sigma : (nv,) of a sample; NaN while unknown
    part : of the sample in the averages
    outputs, counts : rows of all modules one after the other, and their number in each module
    squares : (nv,) state: averages of the squared ratios
    external : (nv,) output

    Returns
    -------
    Module with the largest mean beyond the limit; -1: none
    """
    worst, largest, first = -1, LARGEST_MEAN, 0
    for module in range(counts.size):
        total = 0.0
        for at in range(first, first + counts[module]):
            row = outputs[at]
            external[row] = residual[row] - uncertainty[row]
            ratio = external[row] / sigma[row]
            if ratio == ratio:
                squares[row] += part * (min(ratio * ratio, _CLIPPED) - squares[row])
            total += squares[row]
        mean = total / counts[module]
        if mean > LARGEST_MEAN:
            for at in range(first, first + counts[module]):
                external[outputs[at]] = math.nan
        if mean > largest:
            worst, largest = module, mean
        first += counts[module]
    return worst


class Guard:
    """Notices samples from which the networks have not learned.

    Parameters
    ----------
    model : of the networks
    floating : True for a floating base
    health : gets an event where a sample is not known
    """

    def __init__(self, model: Model, floating: bool, health: Health) -> None:
        self._health = health
        low, high = model.input_range
        margin = np.maximum(MARGIN * (high - low), _LEAST_MARGIN)
        self._low, self._high = low - margin, high + margin
        self._input_names = _input_names(model.identity.joint_names, floating)
        self._period = self._mean_step = model.period
        modules = [network.module for network in model.networks]
        self._limbs = [module.name for module in modules]
        self._outputs = np.concatenate([module.outputs for module in modules]).astype(np.int64)
        self._counts = np.array([module.outputs.size for module in modules], dtype=np.int64)
        self.reset()

    def reset(self) -> None:
        """Forget the errors so far."""
        self._squares = np.ones(self._outputs.size)

    def knows(self, inputs: FloatArray, stamp_ns: int, dt: float) -> bool:
        """Whether inputs and rate are those of the training data."""
        outside = (inputs < self._low) | (inputs > self._high)
        if outside.any():
            worst = int(np.flatnonzero(outside)[0])
            self._health.add_lasting_event(
                "mob_net_input",
                stamp_ns,
                f"'{self._input_names[worst]}' = {inputs[worst]:.3g} is outside {self._low[worst]:.3g} to "
                f"{self._high[worst]:.3g}, for which MOB-Net was trained: the external torque is that of the observer; "
                "train with such motions",
            )
            return False
        self._mean_step += (dt - self._mean_step) / _AVERAGED if dt > 0.0 else 0.0
        if not 1.0 / _LARGEST_RATE_RATIO < self._mean_step / self._period < _LARGEST_RATE_RATIO:
            self._health.add_lasting_event(
                "mob_net_rate",
                stamp_ns,
                f"joint states come every {self._mean_step:.3g} s, MOB-Net was trained with {self._period:.3g} s: "
                "the external torque is that of the observer; train with recordings of this rate",
            )
            return False
        return True

    def external_torque(
        self, residual: FloatArray, uncertainty: FloatArray, sigma: FloatArray, stamp_ns: int, dt: float
    ) -> FloatArray:
        """Residual without uncertainty torque (nv,); NaN in the rows of modules where it does not agree with sigma."""
        external, part = np.empty(self._squares.size), min(dt / _MEMORY, 1.0)
        modules = self._outputs, self._counts
        worst = step_consistency(residual, uncertainty, sigma, part, *modules, self._squares, external)
        if worst >= 0:
            self._health.add_lasting_event(
                "mob_net_sigma",
                stamp_ns,
                f"the external torque of '{self._limbs[worst]}' stays beyond the sigma of MOB-Net: it is not used "
                "there; train with such motions and loads, or let nothing hold the robot",
            )
        return external


def _input_names(joint_names: tuple[str, ...], floating: bool) -> list[str]:
    names = [f"{quantity} of {joint}" for quantity in ("position", "velocity", "torque") for joint in joint_names]
    columns = [f"rotation matrix of the base, row {row}, column {column}" for column in (1, 2) for row in (1, 2, 3)]
    rates = [f"{quantity} {axis} of the base" for quantity in ("angular velocity", "specific force") for axis in "xyz"]
    return names + (columns + rates if floating else [])
