"""``validate``: how well an identification predicts other recordings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from friction_estimator.api.experiments import (
    Recordings,
    Stage,
    Warn,
    explained,
    read_experiments,
    silent,
    warn_about_data,
)
from friction_estimator.api.identify import ScoredIdentification, measured_friction, warning_collector
from friction_estimator.api.rollouts import RolloutScore, rollout_scores, rollout_urdf
from friction_estimator.config.robot import Coupling
from friction_estimator.errors import InputError, choices
from friction_estimator.identification.fixed_base_model import FixedBaseModel
from friction_estimator.identification.joint_log import (
    FRICTION_INPUT,
    ExternalWrench,
    JointLog,
    Payload,
)
from friction_estimator.identification.linear_problem import FOLDS
from friction_estimator.identification.prediction import TorquePrediction, curves_of_laws, rows_of_live_law, validated
from friction_estimator.identification.recording.motion import Motion, to_motions, usual_treatment
from friction_estimator.identification.recording.torque_checks import Gain
from friction_estimator.identification.result import Identification
from friction_estimator.io.identification_file import read_identification
from friction_estimator.io.robot import Robot
from friction_estimator.linear_algebra import one_blas_thread
from friction_estimator.robot.transmission import Transmission
from friction_estimator.types import AnyPath


@dataclass(frozen=True, slots=True)
class ValidationResult(ScoredIdentification):
    """Errors of an identification on recordings that took no part in it; scores and samples are of these recordings.

    Attributes
    ----------
    rollouts : errors of the simulated robot under the recorded commands, empty unless they are wanted
    """

    rollouts: tuple[RolloutScore, ...] = ()


@one_blas_thread()
def validate(
    identification: AnyPath | Identification,
    recordings: Recordings,
    robot: AnyPath | Robot | None = None,
    *,
    coupling: AnyPath | None = None,
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
    stage : called with the title of each long piece of work; returns a context manager of its progress
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
    note, working = warning_collector(warnings, warn), stage or silent
    found = identification if isinstance(identification, Identification) else read_identification(identification)
    experiments = read_experiments(
        recordings, robot, working, note, joints=joints, coupling=coupling, payloads=payloads, namespace=namespace,
        kp=kp, kd=kd, wrenches=wrenches,
    )  # fmt: skip
    suspicions = warn_about_data(experiments, note)
    logs: Sequence[JointLog] = experiments.logs
    chosen = experiments.robot
    if chosen is not None and not chosen.config.robot.fixed_base:
        logs, _ = measured_friction(experiments, namespace, working, note)
    urdf, torques = None if chosen is None else chosen.urdf_xml, any(FRICTION_INPUT not in log.inputs for log in logs)
    with working("validating") as progress, explained(suspicions):
        predictions = [one for one in found.predictions if torques or getattr(one, "drive", one) is None]
        if not predictions:
            by_laws = _by_laws(found, logs, urdf, experiments.coupling)
            return ValidationResult.from_identification(by_laws, warnings=tuple(warnings))
        _refuse_unknown(logs[0].joint_names, predictions)
        if rollout:
            rollout_urdf(logs, urdf)  # refused before the work
        rows, motions = [], list[Motion]()
        for number, prediction in enumerate(predictions):
            compared, made = prediction.compared(logs, urdf)
            rows.append(compared)
            motions += made
            if progress is not None:
                progress(number + 1, len(predictions))
    rollouts = rollout_scores(found, logs, urdf) if rollout else ()
    return ValidationResult.from_identification(
        validated(found, rows, motions), warnings=tuple(warnings), rollouts=rollouts
    )


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
    if all(FRICTION_INPUT in log.inputs for log in logs):
        motors = Transmission.from_coupling(coupling, names)
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
