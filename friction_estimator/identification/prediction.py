"""What an identification predicts, exactly as it was fitted: saved with the result, and used for its own errors.

:func:`validated` compares the predictions with other recordings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np

from friction_estimator.config.robot import Coupling
from friction_estimator.errors import InputError, choices
from friction_estimator.identification.curves.drive import DriveRecording, curve_motions
from friction_estimator.identification.curves.problem import OFFSET_COLUMN, CurveSamples, curve_samples
from friction_estimator.identification.fixed_base_model import FixedBaseModel
from friction_estimator.identification.inverse_dynamics.delay import shift_torque
from friction_estimator.identification.inverse_dynamics.drive_gains import in_newton_metres
from friction_estimator.identification.inverse_dynamics.estimation import usable_rows
from friction_estimator.identification.inverse_dynamics.friction_columns import FrictionColumns
from friction_estimator.identification.inverse_dynamics.observation import Body, Observation, observe
from friction_estimator.identification.joint_log import JointLog
from friction_estimator.identification.linear_problem import FOLDS
from friction_estimator.identification.recording.motion import Motion, Treatment, to_motions
from friction_estimator.identification.result import (
    FEWEST_JUDGED,
    GAIN_EXPLAINS,
    OTHER_GAIN,
    Finding,
    Identification,
    JointScore,
    Severity,
    sentences,
)
from friction_estimator.identification.rigid_body import drive_inertia_columns
from friction_estimator.identification.scoring import Rows, samples_of
from friction_estimator.laws import make_law
from friction_estimator.laws.identified import IdentifiedParameters, JointLaw
from friction_estimator.robot.transmission import Transmission
from friction_estimator.types import BoolArray, FloatArray


@dataclass(frozen=True, slots=True)
class TorquePrediction:
    """Motor torques of the joints of one limb, as the method `inverse_dynamics` fitted them."""

    joints: tuple[str, ...]  # (n)
    treatment: Treatment  # of the recordings
    columns: FrictionColumns  # of friction
    friction: tuple[float, ...]  # their values
    # standard parameters by name, e.g. `Izz knee` and the drive inertia `Ia knee`; those that are missing are
    # zero
    inertia: Mapping[str, float]
    delay: float  # by which torques are late [s]
    dead_zone: tuple[float, ...]  # speed of every place of friction below which samples do not count [rad/s]
    limits: tuple[float, ...]  # (n) errors beyond which a sample is a push [N m]
    coupling: Coupling | None = None  # of motors that move several joints; None: every joint has its own
    payload_scale: float = 1.0  # mass of the payloads over that which was given
    payloads: Mapping[str, float] = field(default_factory=dict)  # what was not known of them, by name
    late_command: bool = False  # of a drive that gets positions, the command is late; False: its torque
    hold: float = 0.0  # by which commands are late, in addition, because drives hold them until the next one comes [s]
    # torque per unit of the recorded effort, by joint; empty: efforts are torques
    gains: Mapping[str, float] = field(default_factory=dict)

    @property
    def motors(self) -> Transmission:
        """Motors (n) whose torques are predicted; one for each joint where joints and motors both have friction."""
        return Transmission.from_coupling(self.coupling if self.columns.adding is None else None, self.joints)

    def compared(self, logs: Sequence[JointLog], urdf_xml: str | None) -> tuple[Rows, list[Motion]]:
        """Measured and predicted torques of other recordings, which may have more joints, and their motions.

        Raises
        ------
        InputError
            When the recordings have no motor torques, or there is no URDF.
        """
        if urdf_xml is None or any(log.effort is None for log in logs):
            raise InputError(
                f"{logs[0].name} cannot be compared with the identification: that needs effort/<joint> and the URDF "
                "of a robot with a fixed base, or friction/<joint>"
            )
        own = [in_newton_metres(log.select(self.joints), self.gains) for log in logs]
        motions = to_motions(own, self.treatment, FOLDS)
        return self.rows(motions, FixedBaseModel(urdf_xml, self.joints)), motions

    def rows(self, motions: Sequence[Motion], model: FixedBaseModel) -> Rows:
        """Measured and predicted torques of all motions.

        Parameters
        ----------
        motions : of the joints, after the treatment, with torques as efforts
        model : of the joints
        """
        parts, columns, values = [], self.columns, np.array(self.friction)
        body = _known_body(model, self.inertia, self.coupling, self.payload_scale, self.payloads)
        observations = observe(motions, body, self.motors, self.treatment.band_hz)
        held = shift_torque(observations, self.hold, command=True)
        for one in shift_torque(held, self.delay, self.late_command):
            motion = one.motion
            friction = columns.columns(motion.position, motion.velocity, one.known, motion.inputs) @ values
            usable = usable_rows([one], columns, np.array(self.dead_zone))[0]
            parts.append(_rows(self.motors.names, one, friction, usable, np.array(self.limits)))
        return Rows.stacked(parts)


def _known_body(
    model: FixedBaseModel,
    inertia: Mapping[str, float],
    coupling: Coupling | None,
    payload_scale: float = 1.0,
    payloads: Mapping[str, float] = MappingProxyType({}),
) -> Body:
    """Rigid body without unknown columns: links, payload and drives.

    Parameters
    ----------
    model : of the recorded joints
    inertia : standard parameters by name; empty: the values of the URDF
    coupling : of the drives, None where every joint has its own
    payload_scale : mass of the payloads over that which was given
    payloads : what was identified of payloads whose mass alone is known
    """

    def columns(motion: Motion) -> tuple[FloatArray, FloatArray]:
        q, v, a = motion.position, motion.velocity, motion.acceleration
        links, regressor = model.urdf_parameters, model.regressor(q, v, a)
        if inertia:
            links = np.array([inertia.get(name, 0.0) for name in model.standard_names])
        if motion.payload is not None:
            if not set(model.unknown_of_payload(motion.payload)) <= set(payloads):
                raise InputError(
                    f"{motion.name}: the centre of mass of its payload of {motion.payload.mass:g} kg at "
                    f"{motion.payload.frame!r} is not known, and was not identified: give it"
                )
            links = links + payload_scale * model.payload_parameters(motion.payload, payloads)
        names, drives = drive_inertia_columns(model.joint_names, a, coupling)
        known = regressor @ links + drives @ np.array([inertia.get(name, 0.0) for name in names])
        return np.zeros((*q.shape, 0)), known

    return columns


def _rows(names: Sequence[str], one: Observation, friction: FloatArray, usable: BoolArray, limits: FloatArray) -> Rows:
    """Rows of one motion behind the filter of both sides."""
    kept = one.filter.kept
    return Rows(
        names=tuple(names),
        velocity=one.motion.velocity[kept],
        load=one.load[kept],
        torque=one.torque,
        rigid=one.filter.apply(one.known),
        friction=one.filter.apply(friction),
        usable=usable,
        limits=limits,
    )


def rows_of_live_law(
    friction: IdentifiedParameters,
    inertia: Mapping[str, float],
    motions: Sequence[Motion],
    model: FixedBaseModel,
    coupling: Coupling | None,
) -> Rows:
    """Measured torques, and those that the live node would predict, which takes the motor torque as the load.

    Parameters
    ----------
    friction : identified laws of the joints, or motors
    inertia : identified standard inertial parameters by name, e.g. ``Izz knee``; others are those of the URDF
    motions : of the joints of the model, with efforts [N m]
    model : of the joints (n)
    coupling : of motors that move several joints together; None: one motor for each joint

    Raises
    ------
    InputError
        When a joint has no identified friction.
    """
    motors = Transmission.from_coupling(coupling, model.joint_names)
    if not set(motors.names) <= set(friction.joint_names):
        motors = Transmission.from_coupling(None, model.joint_names)
    laws, parts = _laws_of(friction, motors.names), []
    for one in observe(motions, _known_body(model, inertia, coupling), motors):
        velocity = one.motion.velocity
        lost = np.column_stack([law.torque(velocity[:, k], one.load[:, k]) for k, law in enumerate(laws)])
        parts.append(_rows(motors.names, one, lost, velocity[one.filter.kept] != 0.0, np.full(len(laws), np.inf)))
    return Rows.stacked(parts)


def _laws_of(known: IdentifiedParameters, names: Sequence[str]) -> list[JointLaw]:
    """Identified laws (n) by name.

    Raises
    ------
    InputError
        When a name has no identified friction.
    """
    missing = [name for name in names if name not in known.joint_names]
    if missing:
        raise InputError(
            f"no friction was identified for {choices(missing)}; the file has {choices(known.joint_names)}"
        )
    return [JointLaw.from_identified(known, name) for name in names]


@dataclass(frozen=True, slots=True)
class CurvePrediction:
    """Measured friction of one joint, as the methods `friction_curve` and `motor` fitted it."""

    joint: str  # its name, or that of the motor
    treatment: Treatment  # of the recordings
    law: str  # of the registry
    values: tuple[float, ...]  # its parameters
    extra_parameters: Mapping[str, float]  # parameters of the columns beyond friction, by name
    delay: float = 0.0  # by which friction is late [s]
    dead_zone: float = 0.0  # speed below which samples do not count [rad/s]
    # standard deviation of the measured friction above which samples do not count [N m]
    max_sigma: float = float("inf")
    coupling: Coupling | None = None  # of the motor with others that move the same joints
    # how friction follows from the torque behind the transmission; None: it was measured
    drive: DriveRecording | None = None

    def compared(self, logs: Sequence[JointLog], urdf_xml: str | None = None) -> tuple[Rows, list[Motion]]:
        """Measured and predicted friction of other recordings, and the motions of the motors; the URDF is not used.

        Raises
        ------
        InputError
            When the recordings lack the joint.
        """
        motions = curve_motions(logs, self.joint, self.treatment, FOLDS, self.coupling, self.drive)
        columns = (OFFSET_COLUMN,) if self.drive is None else self.drive.columns
        samples = curve_samples(motions, self.joint, columns, self.delay, self.dead_zone, self.max_sigma)
        return self.predicted(samples), motions

    def predicted(self, samples: CurveSamples) -> Rows:
        """Measured and predicted friction of samples of a curve, row by row."""
        law, beyond = make_law(self.law), samples.extra_torque(self.extra_parameters)
        friction, known = (
            law.torque(np.array(self.values)[None], samples.velocity, samples.load),
            self.drive is not None,
        )
        none = np.full_like(friction, np.nan)
        signals = {
            "velocity": samples.velocity,
            "load": none if samples.load is None else samples.load,
            "torque": samples.friction,
            "rigid": beyond if known else none,
            "friction": friction if known else friction + beyond,
        }
        columns = {name: signal[:, None] for name, signal in signals.items()}
        return Rows(names=(self.joint,), **columns, usable=samples.scored[:, None], limits=np.full(1, np.inf))


def curves_of_laws(
    friction: IdentifiedParameters, names: Sequence[str], treatment: Treatment, coupling: Coupling | None
) -> list[CurvePrediction]:
    """Predictions of measured friction, one per joint or motor of ``names``, by laws of another method or the node.

    Raises
    ------
    InputError
        When a joint has no identified friction.
    """
    return [
        CurvePrediction(
            name,
            treatment,
            one.law.name,
            tuple(one.values.tolist()),
            {},
            coupling=None if coupling is None else coupling.part_of(name),
        )
        for name, one in zip(names, _laws_of(friction, names), strict=True)
    ]


def validated(identification: Identification, rows: Sequence[Rows], motions: Sequence[Motion]) -> Identification:
    """The same identification with the scores, samples and verdicts of other recordings.

    Parameters
    ----------
    rows : measured and predicted torques, one entry per limb
    motions : of the recordings

    Raises
    ------
    InputError
        When no joint has samples enough to be judged.
    """
    scores = tuple(replace(score, fit_error=float("nan")) for part in rows for score in part.scores())
    if all(score.samples < FEWEST_JUDGED for score in scores):
        each = ", ".join(f"{score.joint} {score.samples}" for score in scores)
        names = dict.fromkeys(motion.name for motion in motions)
        seconds = sum(motion.period * motion.time.size for motion in motions)
        raise InputError(
            f"{choices(names)}: too few samples to validate the identification, {each}, and {FEWEST_JUDGED} are "
            f"needed. In its band, up to {motions[0].parallel_hz:.3g} Hz, the {seconds:.3g} s between the edges of the "
            "filters have no more that are faster than its slowest ones: record longer motion, or identify from faster "
            "motion"
        )
    before = {score.joint: score for score in identification.scores}
    return replace(
        identification,
        scores=scores,
        samples=tuple(
            samples_of(identification.friction, part, joint) for part in rows for joint in range(len(part.names))
        ),
        verdicts=sentences(
            [*_about_gains(rows), *(_about_new_score(score, before.get(score.joint)) for score in scores)]
        ),
        provenance=replace(
            identification.provenance,
            data=tuple(dict.fromkeys((motion.name, motion.digest) for motion in motions)),
            choices=tuple(dict.fromkeys(f"{one.name}: {choice}" for one in motions for choice in one.choices)),
        ),
    )


_WORSE_THAN_BEFORE = 1.5
"""Errors larger than this many times the held-out error of the identification are worth a sentence."""


def _about_new_score(score: JointScore, before: JointScore | None) -> Finding:
    """How well new recordings of a joint are predicted, compared with the held-out error of the identification."""
    if score.samples < FEWEST_JUDGED:
        text = (
            f"{{}} samples are too few to validate the friction, {FEWEST_JUDGED} are needed that are in the band of "
            "the identification and faster than its slowest ones: record longer, or faster, motion"
        )
        return Finding(Severity.FAULT, text, score.joint, f"{score.samples}")
    relative = score.relative_error
    severity = Severity.NOTE if relative < 1.0 else Severity.FAULT  # than predicting zero
    if before is None or not before.held_out_error > 0.0:
        text, detail = "new recordings are predicted with an error of {}", f"{100.0 * relative:.1f} %"
        return Finding(severity, text, score.joint, detail, relative)
    ratio = score.held_out_error / before.held_out_error
    text = "the error on new recordings is {} times the held-out error of the identification"
    if ratio > _WORSE_THAN_BEFORE:
        text = f"{text}: check whether friction, payload or speed range differ from the identification"
        severity = max(severity, Severity.DOUBT)
    return Finding(severity, text, score.joint, f"{ratio:.1f}", relative)


def _about_gains(rows: Sequence[Rows]) -> list[Finding]:
    """Joints whose measured torque is the predicted one times a number."""
    found = []
    for part in rows:
        scored, error = part.scored, part.error
        for joint, name in enumerate(part.names):
            torque, left = part.torque[scored[:, joint], joint], error[scored[:, joint], joint]
            predicted = torque - left
            power = float(predicted @ predicted)
            gain = float(torque @ predicted) / power if power > 0.0 else 1.0
            rest = float(np.sum((torque - gain * predicted) ** 2))
            explains = rest < (1.0 - GAIN_EXPLAINS) * float(left @ left)
            if torque.size >= FEWEST_JUDGED and abs(gain - 1.0) > OTHER_GAIN and explains:
                text = "the torque is {} times the prediction: check gain, unit and supply voltage"
                found.append(Finding(Severity.FAULT, text, name, f"{gain:.2f}"))
    return found
