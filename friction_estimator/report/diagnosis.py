"""Diagnosis of a recording, joint by joint, from its topics."""

from __future__ import annotations

import math

import numpy as np

from friction_estimator.config import TrustConfig
from friction_estimator.estimation.diagnosis import NO_PROBLEM, DiagnosisFigures, JointDiagnosis, diagnose
from friction_estimator.estimation.diagnosis_monitor import DiagnosisMonitor, RecordedEstimate
from friction_estimator.laws.joint_laws import JointLaws
from friction_estimator.laws.linear import COULOMB_VISCOUS
from friction_estimator.messages.recording import Recording, Series
from friction_estimator.report.tables import Cell, Table
from friction_estimator.robot.transmission import Transmission
from friction_estimator.types import FloatArray

_MOST_SAMPLES = 20_000


def diagnose_recording(recording: Recording, after: float = 0.0) -> tuple[DiagnosisFigures, tuple[JointDiagnosis, ...]]:
    """Figures and diagnosis of a whole recording by the monitor of the live node.

    Passivity, excitation and drift of F_c and F_v; innovations, calibration and pushes are not recorded. Joints that
    share motors are judged as their motors, at the joints' places: friction of one motor may drive a joint.

    Parameters
    ----------
    after : samples before this time are left out [s]
    """
    duration = max(float(recording.time[-1]), 1e-3)
    period = min(max(TrustConfig().period, duration / _MOST_SAMPLES), 10.0)
    config = TrustConfig(period=period, memory=min(1e3 * duration + 1.0, 1e6))
    n = len(recording.joint_names)
    laws, motors = JointLaws([COULOMB_VISCOUS.name] * n), recording.description.motors(recording.joint_names)
    monitor = DiagnosisMonitor(config, laws, np.full((n, laws.parameter_count), np.nan), velocity_std=0.0)
    step = period / max(float(np.median(np.diff(recording.time))), 1e-9) if recording.time.size > 1 else 1.0
    for row in range(int(np.searchsorted(recording.time, after)), recording.time.size, max(1, round(step))):
        monitor.add(_estimate(recording, row, motors))
    figures = monitor.figures()
    return figures, diagnose(figures, config, recording.joint_names)


def diagnosis_table(recording: Recording, after: float = 0.0) -> Table:
    """Diagnosis of every joint, with its figures."""
    figures, diagnoses = diagnose_recording(recording, after)
    rows = tuple(
        (
            Cell(diagnosis.joint),
            Cell(f"{figures.moving_time[row]:.1f} s", "fair" if "excitation" in diagnosis.kinds else ""),
            Cell(_share(figures.driving[row]), "bad" if "passivity" in diagnosis.kinds else ""),
            Cell(_change(figures.drift[row], figures.law[row]), "bad" if "drift" in diagnosis.kinds else ""),
            Cell(", ".join(diagnosis.kinds) or NO_PROBLEM, "bad" if diagnosis.problems else "good"),
        )
        for row, diagnosis in enumerate(diagnoses)
    )
    columns = ("it moved for", "friction drives,<br>of that time", "law changed<br>since the start", "problems")
    return Table("Which joints may be trusted?", (("figures", 3), ("diagnosis", 1)), columns, rows)


def _estimate(recording: Recording, row: int, motors: Transmission) -> RecordedEstimate:
    time, velocity = float(recording.time[row]), motors.velocity(recording.velocity[row])
    unknown = np.full(velocity.size, np.nan)
    coulomb, viscous, coulomb_sigma, viscous_sigma = (
        _held(series, time, unknown)
        for series in (recording.coulomb, recording.viscous, recording.coulomb_sigma, recording.viscous_sigma)
    )
    return RecordedEstimate(
        stamp_ns=round(1e9 * time),
        velocity=velocity,
        effort=np.zeros(velocity.size),
        friction=motors.torque(recording.friction[row]),
        sigma=motors.torque_std(recording.sigma[row]),
        model_sigma=coulomb_sigma + np.abs(velocity) * viscous_sigma,
        parameters=np.stack((coulomb, viscous), axis=1),
        parameters_sigma=np.stack((coulomb_sigma, viscous_sigma), axis=1),
        consistency=unknown,
        calibration_torque=unknown,
        disturbed=np.zeros(velocity.size, dtype=bool),
    )


def _held(series: Series | None, time: float, unknown: FloatArray) -> FloatArray:
    """Newest values (n,) of a slow topic."""
    if series is None:
        return unknown
    row = int(np.searchsorted(series.time, time, side="right")) - 1
    return np.asarray(series.values[row]) if row >= 0 else unknown


def _share(value: float) -> str:
    return f"{100.0 * value:.0f} %" if math.isfinite(value) else "–"


def _change(drift: float, law: float) -> str:
    return f"{drift:.2g} of {law:.2g} N m" if math.isfinite(drift) else "–"
