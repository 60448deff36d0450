"""Where the base is on the ground, from the standing soles: each carries it along in proportion to its load."""

from __future__ import annotations

import numpy as np

from friction_estimator.core.types import BoolArray, FloatArray


class SolePlaces:
    """Horizontal position of the base: ``p = sum_i share_i (a_i - r_i)`` over the standing soles.

    ``r_i`` is the vector from the base to the sole by the joints, ``a_i`` the place of the sole, fixed when it lands by
    what the other standing soles say of the base at that instant. In the air the velocity carries on.

    Parameters
    ----------
    feet : their number k
    landing_std : how far a foot slips while it lands [m]

    Attributes
    ----------
    position : (2,) of the base, world axes [m]; zero at the start
    variance : (2,) of it, but for errors of the attitude [m^2]
    """

    def __init__(self, feet: int, landing_std: float) -> None:
        self._feet = feet
        self._landing_variance = landing_std**2
        self.reset()

    def reset(self) -> None:
        """Begin anew, above the origin of the world; the soles that stand then define it."""
        self.position, self.variance = np.zeros(2), np.zeros(2)
        self._standing = np.zeros(self._feet, dtype=bool)
        self._place = np.zeros((self._feet, 2))
        self._place_variance = np.zeros((self._feet, 2))

    def step(
        self, soles: FloatArray, standing: BoolArray, load: FloatArray, moved: FloatArray, spread: FloatArray
    ) -> None:
        """Advance by one sample.

        Parameters
        ----------
        soles : (k, 2) from the base origin to the soles, world axes [m]
        standing : (k,)
        load : (k,) normal forces, in any unit
        moved, spread : (2,) what the velocity adds to the position [m] and its variance [m^2]
        """
        weight = np.where(standing, np.maximum(load, 0.0), 0.0)
        held = np.where(self._standing, weight, 0.0)
        if held.any():
            self._rest_on(soles, held)
        else:
            self.position, self.variance = self.position + moved, self.variance + spread
        landed = standing & ~self._standing
        if landed.any():
            self._place[landed] = self.position + soles[landed]
            self._place_variance[landed] = self.variance + self._landing_variance
            if weight.any():
                self._rest_on(soles, weight)
        self._standing = standing

    def _rest_on(self, soles: FloatArray, weight: FloatArray) -> None:
        """Errors of the places are not averaged out: each sole was placed by the one before."""
        share = weight / weight.sum()
        self.position = share @ (self._place - soles)
        self.variance = share @ self._place_variance
