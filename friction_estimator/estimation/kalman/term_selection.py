"""Model selection: which of the terms of presliding and ripple are added to the laws of the motors.

Terms of presliding are there until the data show that there is none, terms of a ripple once the data show one. Motors
of a robot are alike, and some hardly move, so all of them decide together.
"""

from __future__ import annotations

import math

import numpy as np

from friction_estimator.estimation.kalman.limb_bank import LimbBank
from friction_estimator.estimation.kalman.limb_filter import LimbFilter
from friction_estimator.estimation.kalman.limb_state import DRY_FRICTION_SPEED
from friction_estimator.estimation.kalman.ripple import RIPPLE_TEST_INTERVAL, RippleSearch
from friction_estimator.laws.identified import IdentifiedParameters
from friction_estimator.laws.joint_laws import JointLaws
from friction_estimator.robot.transmission import Transmission
from friction_estimator.types import FloatArray

_PRESLIDING_TEST_INTERVAL = 0.5
"""Interval between two tests for presliding [s]."""
_MAX_SPREAD_OF_KNOWN_PRESLIDING = 0.5
"""Presliding of a motor is observable when the standard deviation of its torque is below this part of the prior."""
_MAX_Z_WITHOUT_PRESLIDING, _MIN_SQUARES_WITHOUT_PRESLIDING = 0.65, 2.0
"""No motor has presliding when no z is above the first, and the squares of the negative ones exceed those of the
positive ones by the second. Sigma of z holds errors that last over many windows, so z is small: with LuGre friction of
2 mrad some z stay above 0.65, and walks without presliding leave its terms after 1 to 16 s."""
_PRESLIDING_OVER_LOAD_FRICTION = 0.1
"""Part of the friction by the load that the terms of presliding miss, in the root mean square: where the load keeps its
sign, friction that lags behind the velocity passes for a gain of the motor torque. Knees of random robots need 0.1."""


def presliding_score(limb_filter: LimbFilter) -> FloatArray:
    """Score z (m,) of presliding, whether the friction of each motor builds up over a distance; 0: not observable.

    ``z = c / sigma_c`` of ``c = sum_k m_k - F_c / 2`` with the torques m of presliding: the sum is near F_c with
    presliding and near zero without, also where the law misses something else.
    """
    layout, built_up = limb_filter.layout, limb_filter.table.presliding
    states = layout.law_states
    law, P = limb_filter.state[states], limb_filter.covariance[states[:, :, None], states[:, None, :]]
    beyond_half = built_up - 0.5 * limb_filter.table.coulomb
    c = (beyond_half * law).sum(axis=1)
    variance, spread = (np.einsum("mi,mij,mj->m", weights, P, weights) for weights in (beyond_half, built_up))
    prior = (built_up * layout.prior_std[states] ** 2).sum(axis=1)
    shown = (spread < _MAX_SPREAD_OF_KNOWN_PRESLIDING**2 * prior) & (variance > 0.0)
    return np.divide(c, np.sqrt(np.where(shown, variance, 1.0)), out=np.zeros(shown.size), where=shown)


def load_presliding_variance(laws: JointLaws, parameters: FloatArray, load: FloatArray) -> FloatArray:
    """Variance (n,) of load-dependent friction that the presliding terms do not represent [(N m)^2].

    Parameters
    ----------
    parameters : (n, p) of the laws
    load : (n,) torque of the motors [N m]
    """
    speed = np.full(load.size, DRY_FRICTION_SPEED)
    phi = laws.regressor(speed, load) - laws.regressor(speed, np.zeros(load.size))
    by_load = np.asarray((phi * parameters).sum(axis=1))
    return (_PRESLIDING_OVER_LOAD_FRICTION * by_load) ** 2


class TermSelection:
    """Presliding and ripple terms that the filters identify now, and tests that add or drop them.

    Parameters
    ----------
    laws : of the motors, without any of these terms
    motors : maps between motors and joints

    Attributes
    ----------
    laws : with the terms
    ripples : (n,) periods of the motors' friction in a turn, (0,) while none is found
    """

    def __init__(self, laws: JointLaws, motors: Transmission) -> None:
        self._law_names, self._motors = laws.law_names, motors
        self.set_terms(np.zeros(0), presliding=True)
        self.reset()

    def set_terms(self, ripples: FloatArray, presliding: bool) -> None:
        """Use these terms, and search for a ripple from the beginning; ``ripples`` (n,) per turn; (0,): no ripple."""
        self.ripples = ripples
        self._use_laws(presliding)
        self._search: RippleSearch | None = RippleSearch(len(self._law_names))

    def drop_presliding(self) -> None:
        """Use no terms of presliding; the search for a ripple goes on."""
        self._use_laws(presliding=False)

    def _use_laws(self, presliding: bool) -> None:
        """Make the laws with terms of the ripple, where one is known, and of presliding, where they are wanted."""
        wanted = {"ripple": bool(self.ripples.size), "presliding": presliding}
        self.laws = JointLaws(self._law_names, [kind for kind, used in wanted.items() if used])

    def reset(self) -> None:
        """Restart at time zero."""
        self._presliding_tested_at = self._ripple_tested_at = 0.0

    @property
    def distance_count(self) -> int:
        """Number of presliding distances among the terms."""
        return int(self.laws.presliding[0].sum())

    def rejects_presliding(self, time: float, bank: LimbBank) -> bool:
        """Whether the data show that no motor has presliding, although there are terms of it; tested now and then."""
        if not self.distance_count or time - self._presliding_tested_at < _PRESLIDING_TEST_INTERVAL:
            return False
        self._presliding_tested_at = time
        z = np.concatenate([presliding_score(limb_filter) for limb_filter in bank.filters])
        return bool((z < _MAX_Z_WITHOUT_PRESLIDING).all() and -(z * np.abs(z)).sum() > _MIN_SQUARES_WITHOUT_PRESLIDING)

    def find_ripple(self, time: float, bank: LimbBank) -> int:
        """Use the newest window; return a new number of ripples per turn once the data show another one, else 0."""
        search, newest, waits = self._search, bank.newest, time < self._ripple_tested_at
        if search is None or newest is None or not newest[0].duration > 0.0 or waits:
            return 0
        window, speed = newest
        middle = self._motors.velocity(window.end_motion.position) - 0.5 * window.duration * speed
        parameters, columns = bank.estimates.parameters, self.laws.added["ripple"]
        search.add(middle, speed, window.regressor, parameters, bank.unexplained, columns)
        if time - self._ripple_tested_at < RIPPLE_TEST_INTERVAL:
            return 0
        self._ripple_tested_at = time
        known = int(self.ripples[0]) if self.ripples.size else 0
        found = search.detect(known)
        if found == known:
            if search.is_over:
                self._search = None
            return 0
        self._ripple_tested_at += RIPPLE_TEST_INTERVAL  # the law must be known first
        return found

    def correct_ripple(self, ripples: FloatArray, bank: LimbBank) -> None:
        """Use another number of ripples per turn (n,).

        The waves are turned so that the old and the new ones agree in the middle of each motor's range.
        """
        assert self._search is not None
        turns, (middle, width) = self.ripples - ripples, self._search.visited()
        angle, spread = turns * middle, np.abs(turns) * width / math.sqrt(12.0)
        columns = self.laws.added["ripple"]
        for one in bank.filters:
            for motor, rows in zip(one.limb.joints.tolist(), one.layout.law_states[:, columns], strict=True):
                c, s = math.cos(angle[motor]), math.sin(angle[motor])
                turn = np.kron(np.eye(2), np.array([[c, -s], [s, c]]))
                values, P = turn @ one.state[rows], one.covariance[np.ix_(rows, rows)]
                amplitude = np.repeat((values**2).reshape(2, 2).sum(axis=1), 2)
                one.replace(rows, values, turn @ P @ turn.T + np.diag(spread[motor] ** 2 * amplitude))
            one.drop_checkpoints()
        bank.refresh_estimates()
        self.ripples, self._search = ripples, RippleSearch(ripples.size)

    def ripples_of(self, identified: IdentifiedParameters, rows: list[int]) -> FloatArray:
        """Ripples a turn (n,), (0,) without: those in these rows of saved parameters, else the present ones.

        Motors that the parameters do not name have the ripples of the others.
        """
        if identified.ripples is None or not identified.ripples[rows].any():
            return self.ripples
        return np.full(len(self._law_names), identified.ripples[rows].max())
