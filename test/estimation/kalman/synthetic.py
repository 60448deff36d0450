"""A limb whose motion obeys the model of the limb filter exactly: everything that it estimates is known."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from friction_estimator.config import KalmanConfig, SensorNoise
from friction_estimator.estimation.kalman.law_bounds import law_bounds
from friction_estimator.estimation.kalman.limb_equations import LAW_ERROR_TIME, LimbBalance
from friction_estimator.estimation.kalman.limb_filter import LimbFilter
from friction_estimator.estimation.kalman.limb_state import Limb, LimbStateLayout, MotorPriors, make_layout
from friction_estimator.laws.joint_laws import JointLaws

JOINTS = 2
WINDOW = 0.01
NOISE = SensorNoise()
LAW_STD = 0.5
_FORCE_STD = 20.0
_LAWS = JointLaws(("three_slope",) * JOINTS)


def motors(joints: int) -> MotorPriors:
    """Motors of 100 N m whose torque sensors and rotor inertias are not quite known."""
    return MotorPriors(np.full(joints, 0.5), np.full(joints, 0.01), np.full(joints, 1e-4))


def limb_of(joints: np.ndarray, feet: np.ndarray) -> Limb:
    """Limb with one motor for each of its joints."""
    return Limb(joints, feet, np.eye(joints.size), np.arange(joints.size)[:, None], np.ones((joints.size, 1)))


def layout_of(config: KalmanConfig, law: str = "three_slope", priors: MotorPriors | None = None) -> LimbStateLayout:
    """Two joints, one foot; torque sensors without offset, rotors without inertia and stiff gears, or these priors."""
    limb, laws = limb_of(np.arange(JOINTS), np.array([0])), JointLaws((law,) * JOINTS)
    return make_layout(limb, laws, config, NOISE, True, priors or MotorPriors(*np.zeros((3, JOINTS))))


def filter_of(config: KalmanConfig, bounded: bool = False, priors: MotorPriors | None = None) -> LimbFilter:
    """Filter of that limb, its law bounded or free."""
    bounds = law_bounds(_LAWS)
    return LimbFilter(
        layout_of(config, priors=priors), config, bounds if bounded else np.zeros_like(bounds), _LAWS.presliding
    )


def random_balances(layout: LimbStateLayout, rng: np.random.Generator, count: int = 12) -> list[LimbBalance]:
    """Windows of a limb of two joints whose columns, torques and momenta are random."""
    windows = []
    for _ in range(count):
        columns = rng.normal(size=(2, layout.size))
        columns[:, layout["momentum"]] = 0.0
        columns[:, layout["law_error"]] = np.eye(2)
        root = rng.normal(size=(2, 2, 2))
        windows.append(
            LimbBalance(WINDOW, rng.normal(size=2), columns, root[0] @ root[0].T, rng.normal(size=2) * 0.1,
                       1e-2 * root[1] @ root[1].T + 1e-4 * np.eye(2), *np.zeros((2, 2)), np.ones(2, bool), np.ones(2))
        )  # fmt: skip
    return windows


@dataclass
class SyntheticLimb:
    """Draws the truth from the prior and generates windows.

    Parameters
    ----------
    layout : of the filter
    rng : source of the truth, the motion and the noise
    law_error_std : of the law error [N m]
    force_std, momentum_std : white noise of the mean forces of a window [N m], and of the momentum [kg m^2/s]
    """

    layout: LimbStateLayout
    rng: np.random.Generator
    law_error_std: float = 0.0
    force_std: float = 0.0
    momentum_std: float = 0.0

    def __post_init__(self) -> None:
        sensors, law = slice(0, self.layout.first_state.effort_offset), self.layout["law"]
        values, vectors = np.linalg.eigh(self.layout.prior_covariance()[sensors, sensors])
        drawn = vectors @ (np.sqrt(np.maximum(values, 0.0)) * self.rng.normal(size=values.size))
        of_motors = self.layout.prior_std[sensors.stop :]
        if of_motors.any():
            of_motors = of_motors * self.rng.normal(size=of_motors.size)
        self.state = np.concatenate((drawn, of_motors))
        self.state[law] = np.abs(self.rng.normal(size=law.stop - law.start)) * LAW_STD
        self.state[self.layout["momentum"]] = 0.0
        self.state[self.layout["law_error"]] = self.rng.normal(size=JOINTS) * self.law_error_std
        self.time = 0.0

    def begin(self, limb_filter: LimbFilter) -> None:
        """Tell a filter the momentum."""
        reading = self.state[self.layout["momentum"]] + self.rng.normal(size=JOINTS) * self.momentum_std
        limb_filter.start_from(reading, np.eye(JOINTS) * self.momentum_std**2)

    def balance(self, impulse: np.ndarray | None = None) -> LimbBalance:
        """Balance of the next window; an impulse (2,) [N m s] changes the momentum unseen."""
        layout, state, rng = self.layout, self.state, self.rng
        self.time += WINDOW
        columns, force = self._columns(), _FORCE_STD * rng.normal(size=JOINTS)
        felt = force + rng.normal(size=JOINTS) * self.force_std
        state[layout["momentum"]] += WINDOW * (force - columns @ state) + (0.0 if impulse is None else impulse)
        decay = math.exp(-WINDOW / LAW_ERROR_TIME)
        kick = rng.normal(size=JOINTS) * self.law_error_std * math.sqrt(1.0 - decay * decay)
        state[layout["law_error"]] = decay * state[layout["law_error"]] + kick
        momentum = state[layout["momentum"]] + rng.normal(size=JOINTS) * self.momentum_std
        identity = np.eye(JOINTS)
        return LimbBalance(
            WINDOW,
            felt,
            columns,
            identity * self.force_std**2,
            momentum,
            identity * self.momentum_std**2,
            *np.zeros((2, JOINTS)),
            np.ones(JOINTS, dtype=bool),
            np.ones(JOINTS),
        )

    def friction(self, balance: LimbBalance, state: np.ndarray) -> np.ndarray:
        """Law and law error (2,) of a state at the velocity of a balance."""
        layout = self.layout
        return balance.force_columns[:, layout["law"]] @ state[layout["law"]] + state[layout["law_error"]]

    def _columns(self) -> np.ndarray:
        layout, rng = self.layout, self.rng
        columns = np.zeros((JOINTS, layout.size))
        columns[:, layout["law_error"]] = np.eye(JOINTS)
        velocity = 0.6 * np.sin(2.0 * np.pi * np.array([1.1, 1.7]) * self.time) + 0.05 * rng.normal(size=JOINTS)
        phi = _LAWS.regressor(velocity, np.zeros(JOINTS))
        blocks = np.zeros((JOINTS, JOINTS, phi.shape[1]))
        blocks[np.arange(JOINTS), np.arange(JOINTS)] = phi
        columns[:, layout["law"]] = blocks.reshape(JOINTS, -1)
        for block, size in ((layout["links"], 20.0), (layout["foot_bias"], 0.5), (layout["foot_gain"], 50.0)):
            columns[:, block] = size * rng.normal(size=(JOINTS, block.stop - block.start))
        columns[:, layout["effort_gain"]] = np.diag(30.0 * rng.normal(size=JOINTS))
        columns[:, layout["accelerometer_bias"]] = 3.0 * rng.normal(size=(JOINTS, 3))
        for block in (layout["wrench_delay"], layout["torque_delay"]):
            columns[:, block] = 300.0 * rng.normal(size=(JOINTS, block.stop - block.start))
        columns[:, layout["effort_offset"]] = np.eye(JOINTS)
        columns[:, layout["compliance"]] = 5e3 * rng.normal(size=(JOINTS, JOINTS))
        columns[:, layout["armature"]] = np.diag(10.0 * np.cos(2.0 * np.pi * np.array([1.1, 1.7]) * self.time))
        return columns
