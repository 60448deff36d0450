"""``validate``: how well an identification predicts other recordings."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from friction_estimator.api.identify import (
    IdentificationResult,
    ScoredIdentification,
    Stage,
    measured_friction,
    noting,
    silent,
)
from friction_estimator.api.recordings import Path_, Recordings, Warn, read_experiments
from friction_estimator.config.robot import Coupling
from friction_estimator.errors import InputError, choices
from friction_estimator.identification.blas import one_blas_thread
from friction_estimator.identification.fixed_base_model import FixedBaseModel
from friction_estimator.identification.joint_log import (
    COMMAND,
    COMMANDED,
    FRICTION,
    KD,
    KP,
    ExternalWrench,
    JointLog,
    Motion,
    Payload,
)
from friction_estimator.identification.linear_problem import FOLDS
from friction_estimator.identification.prediction import (
    TorquePrediction,
    curves_of_laws,
    rows_of_live_law,
)
from friction_estimator.identification.recording.torque_checks import Gain
from friction_estimator.identification.recording.zero_phase import to_motions, usual_treatment
from friction_estimator.identification.result import Identification
from friction_estimator.identification.scoring import validated
from friction_estimator.io.export.exporter import joint_frictions
from friction_estimator.io.export.robot_models import urdf_with_bodies
from friction_estimator.io.identification import load_identification
from friction_estimator.io.robot import Robot, as_robot
from friction_estimator.robot.transmission import Transmission
from friction_estimator.robot.urdf import parse_urdf
from friction_estimator.types import FloatArray

if TYPE_CHECKING:
    from friction_estimator.simulation.simulator import Drives


@dataclass(frozen=True, slots=True)
class RolloutScore:
    """RMS errors of the simulated position of one joint in one recording [rad].

    Attributes
    ----------
    recording, joint : names
    travel : RMS of the recorded position about its mean
    identified : of the robot with identified friction, armature and delay
    urdf : of the URDF alone, with the friction that it has
    """

    recording: str
    joint: str
    travel: float
    identified: float
    urdf: float


@dataclass(frozen=True, slots=True)
class ValidationResult(ScoredIdentification):
    """Errors of an identification on recordings that took no part in it: scores, samples and verdicts are theirs.

    Attributes
    ----------
    rollouts : errors of the simulated robot under the recorded commands, empty unless they are wanted
    """

    rollouts: tuple[RolloutScore, ...] = ()


@one_blas_thread()
def validate(
    identification: Path_ | IdentificationResult | Identification,
    recordings: Recordings,
    robot: Path_ | Robot | None = None,
    *,
    coupling: Path_ | None = None,
    payloads: Mapping[str, Payload] | None = None,
    joints: Sequence[str] | None = None,
    namespace: str = "",
    kp: Gain | None = None,
    kd: Gain | None = None,
    wrenches: Sequence[ExternalWrench] = (),
    rollout: bool = False,
    stage: Stage | None = None,
    warn: Warn | None = None,
) -> ValidationResult:
    """Apply an identification to other recordings.

    Recordings with measured friction, and bags of walking robots, are compared with the friction of the identified
    laws. Recordings of motor torques of a robot with a fixed base are compared with the whole torque: identified
    inertia (that of the URDF where none was identified) and friction.

    Parameters
    ----------
    identification : a result of :func:`~friction_estimator.identify`, or the path of its parameter file
    recordings, robot, coupling, payloads, joints, namespace, kp, kd, wrenches : as for
        :func:`~friction_estimator.identify`
    rollout : simulate the robot under the recorded commands of its drives, too; needs MuJoCo
    stage : reports long pieces of work
    warn : called with every warning as it is found

    Raises
    ------
    FrictionEstimatorError
        When the recordings cannot be compared with the identification.

    Examples
    --------
    >>> import friction_estimator as fe, numpy as np
    >>> time = np.linspace(0.0, 20.0, 4001)
    >>> velocity = 1.5 * np.sin(time) + np.sin(2.6 * time)
    >>> friction = 0.8 * np.sign(velocity) + 0.3 * velocity + 0.01 * np.sin(37.0 * time)
    >>> position = -1.5 * np.cos(time) - np.cos(2.6 * time) / 2.6
    >>> np.savez("/tmp/joint.npz", time=time, position=position, velocity=velocity, friction=friction)
    >>> result = fe.identify("/tmp/joint.npz", law="coulomb_viscous")
    >>> fe.validate(result, "/tmp/joint.npz").scores[0].relative_error < 0.1
    True
    """
    warnings: list[str] = []
    note, working = noting(warnings, warn), stage or silent
    found = _identification_of(identification)
    with working("reading") as progress:
        experiments = read_experiments(
            recordings,
            None if robot is None else as_robot(robot),
            joints=joints,
            coupling=coupling,
            payloads=payloads or {},
            namespace=namespace,
            progress=progress,
            warn=note,
            kp=kp,
            kd=kd,
            wrenches=wrenches,
        )
    logs: Sequence[JointLog] = experiments.logs
    chosen = experiments.robot
    if chosen is not None and not chosen.config.robot.fixed_base:
        logs, _ = measured_friction(experiments, namespace, working, note)
    urdf, torques = None if chosen is None else chosen.urdf_xml, any(FRICTION not in log.inputs for log in logs)
    with working("validating") as progress:
        predictions = [one for one in found.predictions if torques or getattr(one, "drive", one) is None]
        if not predictions:
            return ValidationResult(_by_laws(found, logs, urdf, experiments.coupling), tuple(warnings))
        _refuse_unknown(logs[0].joint_names, predictions)
        rows, motions = [], list[Motion]()
        for number, prediction in enumerate(predictions):
            compared, made = prediction.compared(logs, urdf)
            rows.append(compared)
            motions += made
            if progress is not None:
                progress(number + 1, len(predictions))
    rollouts = _rollouts(found, logs, urdf) if rollout else ()
    return ValidationResult(validated(found, rows, motions), tuple(warnings), rollouts)


def _rollouts(found: Identification, logs: Sequence[JointLog], urdf_xml: str | None) -> tuple[RolloutScore, ...]:
    """The robot of the identification, and the URDF alone, under the commands of all recordings.

    Raises
    ------
    InputError
        When there is no URDF, or no recording with commands of drives.
    """
    from friction_estimator.simulation.simulator import rollout  # MuJoCo is needed here only

    if urdf_xml is None or any(COMMANDED not in log.inputs for log in logs):
        raise InputError("a rollout needs a robot with a fixed base, command/<joint>, and the gains kp and kd")
    bodies = urdf_with_bodies(urdf_xml, found.bodies)
    scores = []
    for log in logs:
        drives, urdf = _drives(found, log, urdf_xml)
        command, start = log.inputs[COMMAND], log.position[0]
        robots = (bodies, drives), (urdf_xml, urdf)
        errors = [rollout(xml, one, log.time, command, start) - log.position for xml, one in robots]
        sizes = [np.sqrt(np.mean(one**2, axis=0)) for one in (log.position - log.position.mean(axis=0), *errors)]
        rows = zip(log.joint_names, *(one.tolist() for one in sizes), strict=True)
        scores += [RolloutScore(log.name, *row) for row in rows]
    return tuple(scores)


def _drives(found: Identification, log: JointLog, urdf_xml: str) -> tuple[Drives, Drives]:
    """Drives with what was identified, and with what the URDF has."""
    from friction_estimator.simulation.simulator import Drives

    names, table = log.joint_names, found.parameters
    friction = {one.joint: one for one in joint_frictions(found)}
    torques = [one for one in found.predictions if isinstance(one, TorquePrediction)]
    delay = {joint: late for one in torques for joint, late in zip(one.joints, one.delay, strict=True)}
    if missing := [name for name in names if name not in friction or name not in delay]:
        raise InputError(f"a rollout needs friction and delay of every joint; {choices(missing)} has none")
    known = dict(zip(table.names, table.values.tolist(), strict=True)) | dict(found.bodies)
    dynamics = {
        joint.get("name", ""): joint.find("dynamics") for joint in parse_urdf(urdf_xml, "of the robot").findall("joint")
    }

    def of_urdf(kind: str) -> FloatArray:
        found = [dynamics[name] for name in names]
        return np.array([0.0 if one is None else float(one.get(kind, "0")) for one in found])

    def identified_part(part: str) -> FloatArray:
        return np.array([known.get(part.format(name), 0.0) for name in names])

    zeros, gains, constant = np.zeros(len(names)), (log.inputs[KP], log.inputs[KD]), of_urdf("friction")
    urdf = Drives(names, *gains, lambda _: constant, of_urdf("damping"), zeros, zeros, zeros)
    simple = [friction[name].simple for name in names]
    coulomb = np.array([one.coulomb for one in simple])
    harmonics = sorted({k for one in torques for k in one.harmonics})
    means = {joint: dict(zip(one.harmonics, np.reshape(wave, (-1, 2)), strict=True))
             for one in torques for joint, wave in zip(one.joints, one.waves, strict=False)}  # fmt: skip
    waves = [
        (k, identified_part(f"{{}}/coulomb_cos_{k:g}"), identified_part(f"{{}}/coulomb_sin_{k:g}"),
         np.array([means.get(name, {}).get(k, (0.0, 0.0)) for name in names]))
        for k in harmonics
    ]  # fmt: skip

    def dry(position: FloatArray) -> FloatArray:
        parts = [c * (np.cos(k * position) - m[:, 0]) + s * (np.sin(k * position) - m[:, 1]) for k, c, s, m in waves]
        return np.maximum(coulomb + sum(parts), 0.0)

    identified = Drives(
        names,
        *gains,
        frictionloss=dry,
        damping=np.array([one.viscous for one in simple]),
        armature=np.maximum(identified_part("Ia {}"), 0.0),
        offset=identified_part("{}/offset"),
        delay=np.maximum([delay[name] for name in names], 0.0),
        late_command=all(one.late_command for one in torques),
        held=any(one.hold for one in torques),
    )
    return identified, urdf


def _refuse_unknown(joint_names: Sequence[str], predictions: Sequence[Any]) -> None:
    known = [name for one in predictions if isinstance(one, TorquePrediction) for name in one.joints]
    unknown = [name for name in joint_names if known and name not in known]
    if unknown:
        raise InputError(f"no friction was identified for {choices(unknown)}; the file has {choices(known)}")


def _by_laws(
    found: Identification, logs: Sequence[JointLog], urdf_xml: str | None, coupling: Coupling | None
) -> Identification:
    """Laws of another method, or of a live node, on measured friction or motor torques."""
    treatment, names = usual_treatment(logs), logs[0].joint_names
    if all(FRICTION in log.inputs for log in logs):
        motors = Transmission.of(coupling, names)
        made = [one.compared(logs) for one in curves_of_laws(found.friction, motors.names, treatment, coupling)]
        return validated(found, [rows for rows, _ in made], [motion for _, own in made for motion in own])
    if urdf_xml is None or any(log.effort is None for log in logs):
        raise InputError(
            f"{logs[0].name} cannot be compared with the identification: that needs friction/<joint>, or a bag of "
            "a walking robot with its sensors and the robot's YAML, or effort/<joint> and the URDF of a robot with "
            "a fixed base"
        )
    motions = to_motions(logs, treatment, FOLDS)
    model = FixedBaseModel(urdf_xml, names)
    return validated(found, [rows_of_live_law(found.friction, found.inertia, motions, model, coupling)], motions)


def _identification_of(given: Path_ | IdentificationResult | Identification) -> Identification:
    if isinstance(given, IdentificationResult):
        return given.identification
    return load_identification(given) if isinstance(given, (str, os.PathLike)) else given
