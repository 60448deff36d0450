"""The table of doubts: right about a recording with known faults, and in the page."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from friction_estimator.config import CouplingConfig
from friction_estimator.messages.recording import Recording, RunDescription, Series
from friction_estimator.reports.recording_page import recording_page
from friction_estimator.reports.recording_tables import diagnose_recording, diagnosis_table


def test_a_passive_recording_has_no_problem(recording: Recording) -> None:
    figures, diagnoses = diagnose_recording(recording)
    assert not any(diagnosis.problems for diagnosis in diagnoses)
    assert (figures.driving == 0.0).all() and np.isfinite(figures.drift).all()


def test_every_fault_is_named_at_its_joint(recording: Recording) -> None:
    """The first joint's friction drives for a third of the time, the second stands still, the third's law doubles."""
    friction, velocity = recording.friction.copy(), recording.velocity.copy()
    friction[2000:, 0] *= -1.0
    velocity[:, 1] = 0.0
    known, spread = Series(recording.time, np.ones((3000, 4))), Series(recording.time, np.full((3000, 4), 0.01))
    coulomb = known.values.copy()
    coulomb[2000:, 2] = 2.0
    spoiled = replace(
        recording, friction=friction, velocity=velocity, coulomb=Series(recording.time, coulomb), viscous=known,
        coulomb_sigma=spread, viscous_sigma=spread,
    )  # fmt: skip
    figures, diagnoses = diagnose_recording(spoiled)
    assert [diagnosis.kinds for diagnosis in diagnoses] == [("passivity",), ("excitation",), (), ()]
    assert [diagnosis.note_kinds for diagnosis in diagnoses] == [(), (), ("drift",), ()]
    np.testing.assert_allclose(figures.driving[0], 1.0 / 3.0, atol=0.01)
    assert 0.3 < figures.drift[2] < 1.0 and figures.drift[3] == 0.0
    rows = diagnosis_table(spoiled).rows
    assert [row[-1].text for row in rows] == [
        "passivity",
        "excitation",
        "no problem found, note: drift",
        "no problem found",
    ]
    assert "Diagnosis" in recording_page(spoiled, "faults").render()


def test_a_recording_without_slow_topics_is_diagnosed_by_what_it_has(recording: Recording) -> None:
    bare = replace(recording, coulomb=None, viscous=None, coulomb_sigma=None, viscous_sigma=None)
    figures, diagnoses = diagnose_recording(bare, after=1.0)
    assert np.isnan(figures.drift).all() and not any(diagnosis.problems for diagnosis in diagnoses)
    assert (figures.moving_time < 2.01).all()


def test_friction_of_a_motor_may_drive_a_joint(recording: Recording) -> None:
    """One motor with friction behind two joints: the joint that moves against it is pushed along."""
    names = recording.joint_names[:2]
    coupling = CouplingConfig(names, ("m", "n"), (0.5, 0.5, 0.5, -0.5))
    velocity, friction = recording.velocity.copy(), recording.friction.copy()
    velocity[:, 0], velocity[:, 1] = 1.0, -0.4
    friction[:, :2] = [2.0, 2.0]  # motor m turns with 0.6 rad/s against 2 N m
    coupled = replace(recording, velocity=velocity, friction=friction)
    reported = replace(coupled, description=replace(recording.description, coupling=coupling))
    assert "passivity" in diagnose_recording(coupled)[1][1].kinds
    assert not any("passivity" in diagnosis.kinds for diagnosis in diagnose_recording(reported)[1])
    written = reported.description.to_custom_data()
    assert RunDescription.from_custom_data(written) == reported.description
