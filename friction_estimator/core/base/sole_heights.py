"""Height of the base above the standing soles, whose own heights settle as they take over the weight.

A sole lands on an edge, which is not where its frame is, and lies flat only under load; a leg that carries is shorter
than one that does not. Taken at the first touch, the height of a sole is millimetres too large, at every step. So the
height of a sole is a state: while it carries little it follows the soles that carry much. No ground is assumed, so
stairs and slopes are as good as a level floor.
"""

from __future__ import annotations

import numpy as np

from friction_estimator.core.config import BaseStateConfig
from friction_estimator.core.types import BoolArray, FloatArray

_LEAST_LOAD = 0.02


class SoleHeights:
    """Kalman filter of ``x = [z, f_1, ..., f_k]``.

    ``dz/dt = v_z``; ``f_i``, the height of sole i, is a random walk over the way that the robot makes, the faster the
    less it carries: ``settle_std / share_i``. The joints see ``f_i - z``.

    Parameters
    ----------
    config : ``base_state``
    feet : their number k

    Attributes
    ----------
    state : (1 + k,) [m]; rows of feet in the air mean nothing
    covariance : (1 + k, 1 + k), but for errors of the attitude [m^2]
    """

    def __init__(self, config: BaseStateConfig, feet: int) -> None:
        self._config = config
        self._feet = feet
        self.reset()

    def reset(self) -> None:
        """Begin anew with the next sample, whose lowest sole is at z = 0."""
        self.state = np.zeros(1 + self._feet)
        self.covariance = np.zeros((1 + self._feet, 1 + self._feet))
        self._standing: BoolArray | None = None

    def step(
        self, soles: FloatArray, standing: BoolArray, load: FloatArray, way: float, moved: float, spread: float
    ) -> None:
        """Advance by one sample.

        Parameters
        ----------
        soles : (k,) of the soles less that of the base origin, by attitude and joints [m]
        standing : (k,)
        load : (k,) normal forces relative to their mean over the standing feet
        way : that the robot has made since the last sample [m]
        moved, spread : what the velocity adds to the height of the base [m] and its variance [m^2]
        """
        if self._standing is None:
            self._standing = np.zeros_like(standing)
            self.state[0] = -soles.min() if soles.size else 0.0
        self.state[0] += moved
        self.covariance[0, 0] += spread
        self._land(np.flatnonzero(standing & ~self._standing).tolist(), soles)
        self._standing = standing
        for foot in np.flatnonzero(standing).tolist():
            settle = self._config.settle_std / min(max(float(load[foot]), _LEAST_LOAD), 1.0)
            self._correct(foot, float(soles[foot]), settle * settle * way)

    def _land(self, feet: list[int], soles: FloatArray) -> None:
        """A sole that lands is as well known as the base and the joints."""
        x, P = self.state, self.covariance
        for foot in feet:
            row = 1 + foot
            x[row] = x[0] + soles[foot]
            P[row] = P[0]
            P[:, row] = P[0]
            P[row, row] = P[0, 0] + self._config.landing_std**2

    def _correct(self, foot: int, seen: float, settled_variance: float) -> None:
        """Use one standing sole, after it may have settled a little."""
        row, x, P = 1 + foot, self.state, self.covariance
        P[row, row] += settled_variance
        measured = P[row] - P[0]
        innovation = seen - float(x[row] - x[0])
        spread = float(measured[row] - measured[0]) + self._config.height_std**2
        self.state = x + measured * (innovation / spread)
        self.covariance = P - np.outer(measured, measured / spread)
