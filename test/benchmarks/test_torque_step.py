"""The study of a torque step applies what it says."""

import dataclasses

import pytest

pytest.importorskip("mujoco", reason="the study simulates walks")

from benchmarks.torque_step import TORQUE, WALKS, walk_with_steps
from friction_estimator.io.robot import load_robot
from friction_estimator.metrics import root_mean_square


def test_the_torque_of_a_step_is_known_behind_the_low_pass_and_absent_from_the_effort():
    walks = dataclasses.replace(WALKS, uncertainty="ideal", length=4.0)
    recording, applied, (step, *_) = walk_with_steps(load_robot("suralp"), 0, walks)
    row = 6 + step.joint
    assert 0.99 * TORQUE < applied[:, row].max() < TORQUE
    error = recording.residual - recording.true_external - applied
    assert root_mean_square(error[:, 6:]).max() < 0.3  # of an observer without any uncertainty
    begin = round((step.start - 4.0) / 1e-3)  # from the end
    effort = recording.inputs[:, 24 + step.joint]
    assert abs(effort[begin + 1] - effort[begin - 1]) < 0.5 * TORQUE
