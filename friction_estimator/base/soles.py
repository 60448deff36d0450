"""Where the base is, by the standing soles: place on the ground in proportion to the load, height above settling soles.

A sole lands on an edge, which is not where its frame is, and lies flat only under load; a leg that carries is shorter
than one that does not. Taken at the first touch, the height of a sole is millimetres too large, at every step. So the
height of a sole is a state: while it carries little it follows the soles that carry much. No ground is assumed, so
stairs and slopes are as good as a level floor.
"""

from __future__ import annotations

import numpy as np

from friction_estimator.compiled import kernel
from friction_estimator.config import BaseStateConfig
from friction_estimator.types import BoolArray, FloatArray

_LEAST_LOAD = 0.02
"""A sole that carries a smaller part of the mean load than this settles as if it carried this part."""


@kernel
def step_heights(
    x: FloatArray,
    P: FloatArray,
    stood: BoolArray,
    running: BoolArray,
    tuning: FloatArray,
    soles: FloatArray,
    standing: BoolArray,
    load: FloatArray,
    distance: float,
    moved: float,
    spread: float,
) -> None:
    """Advance state and covariance of :class:`SoleHeights` by one sample, in place."""
    settle_std, height_std, landing_std = tuning[0], tuning[1], tuning[2]
    size = x.size
    if not running[0]:
        running[0] = True
        stood[:] = False
        if soles.size:
            x[0] = -soles.min()
    x[0] += moved
    P[0, 0] += spread
    for foot in range(standing.size):
        if standing[foot] and not stood[foot]:  # as well known as the base and the joints
            row = 1 + foot
            x[row] = x[0] + soles[foot]
            for j in range(size):
                P[row, j] = P[0, j]
            for j in range(size):
                P[j, row] = P[0, j]
            P[row, row] = P[0, 0] + landing_std**2
        stood[foot] = standing[foot]
    for foot in range(standing.size):
        if standing[foot]:  # it may have settled a little
            row = 1 + foot
            settle = settle_std / min(max(load[foot], _LEAST_LOAD), 1.0)
            P[row, row] += settle * settle * distance
            measured = P[row] - P[0]
            innovation = soles[foot] - (x[row] - x[0])
            variance = measured[row] - measured[0] + height_std**2
            for i in range(size):
                x[i] += measured[i] * (innovation / variance)
                for j in range(size):
                    P[i, j] -= measured[i] * measured[j] / variance


class SoleHeights:
    """Kalman filter of ``x = [z, f_1, ..., f_k]``.

    ``dz/dt = v_z``; ``f_i``, the height of sole i, is a random walk over the distance that the robot travels, the
    faster the less it carries: ``settle_std / share_i``. The joints see ``f_i - z``.

    Parameters
    ----------
    config : ``base_state``
    feet : their number k

    Attributes
    ----------
    state : (1 + k,) [m]; rows of feet in the air mean nothing
    covariance : (1 + k, 1 + k), but for errors of the attitude [m^2]
    stood : (k,) soles that stood at the last sample
    running : (1,) False before the first sample, whose lowest sole is at z = 0
    tuning : parameters of :func:`step_heights`
    """

    def __init__(self, config: BaseStateConfig, feet: int) -> None:
        self.tuning = np.array([config.settle_std, config.height_std, config.landing_std])
        self._feet = feet
        self.reset()

    def reset(self) -> None:
        """Begin anew with the next sample, whose lowest sole is at z = 0."""
        self.state = np.zeros(1 + self._feet)
        self.covariance = np.zeros((1 + self._feet, 1 + self._feet))
        self.stood: BoolArray = np.zeros(self._feet, dtype=bool)
        self.running: BoolArray = np.zeros(1, dtype=bool)


@kernel
def step_places(
    position: FloatArray,
    variance: FloatArray,
    stood: BoolArray,
    place: FloatArray,
    place_variance: FloatArray,
    landing_variance: float,
    soles: FloatArray,
    standing: BoolArray,
    load: FloatArray,
    moved: FloatArray,
    spread: FloatArray,
) -> None:
    """Advance position and places of :class:`SolePlaces` by one sample, in place."""
    held, carried, landed = 0.0, 0.0, False
    for foot in range(standing.size):
        if standing[foot]:
            carried += max(load[foot], 0.0)
            if stood[foot]:
                held += max(load[foot], 0.0)
            else:
                landed = True
    if held > 0.0:
        _rest_on(position, variance, place, place_variance, soles, standing & stood, load, held)
    else:
        for axis in range(2):
            position[axis] += moved[axis]
            variance[axis] += spread[axis]
    for foot in range(standing.size):
        if standing[foot] and not stood[foot]:
            for axis in range(2):
                place[foot, axis] = position[axis] + soles[foot, axis]
                place_variance[foot, axis] = variance[axis] + landing_variance
    if landed and carried > 0.0:
        _rest_on(position, variance, place, place_variance, soles, standing, load, carried)
    for foot in range(standing.size):
        stood[foot] = standing[foot]


@kernel
def _rest_on(
    position: FloatArray,
    variance: FloatArray,
    place: FloatArray,
    place_variance: FloatArray,
    soles: FloatArray,
    carrying: BoolArray,
    load: FloatArray,
    total: float,
) -> None:
    """Errors of the places are not averaged out: each sole was placed by the one before."""
    for axis in range(2):
        position[axis] = variance[axis] = 0.0
        for foot in range(carrying.size):
            if carrying[foot]:
                share = max(load[foot], 0.0) / total
                position[axis] += share * (place[foot, axis] - soles[foot, axis])
                variance[axis] += share * place_variance[foot, axis]


class SolePlaces:
    """Horizontal position of the base: ``p = sum_i share_i (a_i - r_i)`` over the standing soles.

    ``r_i`` is the vector from the base to the sole by the joints, ``a_i`` the place of the sole, fixed when it lands by
    the position of the base that the other standing soles give at that instant. In the air the velocity carries on.

    Parameters
    ----------
    feet : their number k
    landing_std : how far a foot slips while it lands [m]

    Attributes
    ----------
    position : (2,) of the base, world axes [m]; zero at the start
    variance : (2,) of it, but for errors of the attitude [m^2]
    stood : (k,) soles that stood at the last sample
    place, place_variance : (k, 2) of the soles [m], [m^2]
    landing_variance : [m^2]
    """

    def __init__(self, feet: int, landing_std: float) -> None:
        self._feet = feet
        self.landing_variance = landing_std**2
        self.reset()

    def reset(self) -> None:
        """Begin anew, above the origin of the world; the soles that stand then define it."""
        self.position, self.variance = np.zeros(2), np.zeros(2)
        self.stood: BoolArray = np.zeros(self._feet, dtype=bool)
        self.place = np.zeros((self._feet, 2))
        self.place_variance = np.zeros((self._feet, 2))
