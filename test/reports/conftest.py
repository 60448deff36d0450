"""A recording with known numbers: two legs of two joints, one leg swings for a while."""

from __future__ import annotations

import numpy as np
import pytest

from friction_estimator.messages.recording import PhaseInterval, Recording, RunDescription, Series

JOINTS = ("l_hip", "l_knee", "r_hip", "r_knee")
SWING = (1.0, 1.4)


@pytest.fixture
def recording() -> Recording:
    """Truth 1 N m with the sign of the velocity; errors +0.1 in stance and -0.3 in swing, sigma 0.1."""
    time = np.arange(3000) * 1e-3
    velocity = np.sin(2.0 * np.pi * time)[:, None] * np.array([1.0, 0.5, -1.0, -0.5])
    truth = np.where(velocity >= 0.0, 1.0, -1.0)
    swings = np.zeros(truth.shape, dtype=bool)
    swings[np.ix_((time >= SWING[0]) & (time < SWING[1]), (0, 1))] = True
    slow = time[::20]
    parameters = np.tile([1.0, 1.0, 1.0, 1.0], (slow.size, 1)) * (1.0 - np.exp(-3.0 * slow))[:, None]
    spread = np.tile(0.2 * np.exp(-slow)[:, None], (1, 4))
    phases = (
        PhaseInterval(0.0, 1.0, "double_support"),
        PhaseInterval(*SWING, "right_support"),
        PhaseInterval(1.4, 3.0, "double_support"),
    )
    return Recording(
        joint_names=JOINTS,
        time=time,
        position=0.1 * velocity,
        velocity=velocity,
        friction=truth + np.where(swings, -0.3, 0.1),
        sigma=np.full(truth.shape, 0.1),
        measured=~swings,
        truth=truth,
        phases=phases,
        true_phases=phases,
        model=Series(slow, truth[::20]),
        coulomb=Series(slow, parameters),
        viscous=Series(slow, 0.5 * parameters),
        coulomb_sigma=Series(slow, spread),
        viscous_sigma=Series(slow, spread),
        external_torque=None,
        description=RunDescription(
            robot="two_legs",
            source="a test",
            observer="fbse",
            law="coulomb_viscous",
            limbs={"l_foot": JOINTS[:2], "r_foot": JOINTS[2:]},
            supports={"l_foot": "left_support", "r_foot": "right_support"},
        ),
        valid=~swings,
    )
