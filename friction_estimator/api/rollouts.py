"""Rollouts: a robot simulated in MuJoCo under the recorded commands of its drives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

import numpy as np

from friction_estimator.errors import InputError, choices
from friction_estimator.identification.joint_log import COMMAND, COMMANDED, KD, KP, JointLog
from friction_estimator.identification.prediction import TorquePrediction
from friction_estimator.identification.result import Identification
from friction_estimator.io.export.exporter import joint_frictions
from friction_estimator.io.export.robot_models import urdf_with_bodies
from friction_estimator.laws.joint_laws import START_LAW
from friction_estimator.metrics import root_mean_square
from friction_estimator.robot.urdf import parse_urdf
from friction_estimator.types import FloatArray

if TYPE_CHECKING:
    from friction_estimator.simulation.simulator import Drives


@dataclass(frozen=True, slots=True)
class RolloutScore:
    """RMS errors of the simulated position of one joint in one recording [rad]."""

    recording: str  # its name
    joint: str  # its name
    travel: float  # RMS of the recorded position about its mean
    identified: float  # of the robot with identified friction, armature and delay
    urdf: float  # of the URDF alone, with the friction that it has


def rollout_urdf(logs: Sequence[JointLog], urdf_xml: str | None) -> str:
    """Text of the URDF, after a check that it can be simulated under the commands of these recordings.

    Raises
    ------
    InputError
        When there is no URDF, or no recording with commands of drives.
    ModuleNotFoundError
        When MuJoCo is missing.
    """
    import_module("mujoco")
    if urdf_xml is None:
        raise InputError("a rollout needs the URDF of a robot with a fixed base: give it (robot=, --robot)")
    if lacking := [log.name for log in logs if COMMANDED not in log.inputs]:
        raise InputError(
            f"a rollout needs the commands of the drives, and {choices(lacking)} lacks them: record command/<joint> of "
            "every joint, and give the gains of the position controllers (kp=, kd=, --kp, --kd)"
        )
    return urdf_xml


def rollout_scores(found: Identification, logs: Sequence[JointLog], urdf_xml: str | None) -> tuple[RolloutScore, ...]:
    """Position errors of the identified robot, and of the URDF alone, simulated under the commands of the recordings.

    Raises
    ------
    InputError
        When there is no URDF, or no recording with commands of drives.
    """
    urdf_xml = rollout_urdf(logs, urdf_xml)
    from friction_estimator.simulation.simulator import rollout

    bodies = urdf_with_bodies(urdf_xml, found.bodies)
    scores = []
    for log in logs:
        command, start = log.inputs[COMMAND], log.position[0]
        robots = (bodies, _identified_drives(found, log)), (urdf_xml, _urdf_drives(log, urdf_xml))
        errors = [rollout(xml, one, log.time, command, start) - log.position for xml, one in robots]
        sizes = [root_mean_square(one) for one in (log.position - log.position.mean(axis=0), *errors)]
        rows = zip(log.joint_names, *(one.tolist() for one in sizes), strict=True)
        scores += [RolloutScore(log.name, *row) for row in rows]
    return tuple(scores)


def _urdf_drives(log: JointLog, urdf_xml: str) -> Drives:
    """Drives with the friction that the URDF has."""
    from friction_estimator.simulation.simulator import Drives

    root = parse_urdf(urdf_xml, "of the robot")
    dynamics = {joint.get("name", ""): joint.find("dynamics") for joint in root.findall("joint")}

    def values(kind: str) -> FloatArray:
        found = [dynamics[name] for name in log.joint_names]
        return np.array([0.0 if one is None else float(one.get(kind, "0")) for one in found])

    constant, zeros = values("friction"), np.zeros(len(log.joint_names))
    gains = log.inputs[KP], log.inputs[KD]
    return Drives(log.joint_names, *gains, lambda _: constant, values("damping"), zeros, zeros, zeros)


def _identified_drives(found: Identification, log: JointLog) -> Drives:
    """Drives with the friction, armature, offsets and delays that were identified."""
    from friction_estimator.simulation.simulator import Drives

    names = log.joint_names
    friction = {one.joint: one for one in joint_frictions(found)}
    torques = [one for one in found.predictions if isinstance(one, TorquePrediction)]
    delay = {joint: one.delay for one in torques for joint in one.joints}
    if missing := [name for name in names if name not in friction or name not in delay]:
        raise InputError(f"a rollout needs friction and delay of every joint; {choices(missing)} has none")
    known = _known(found)

    def values(part: str) -> FloatArray:
        return np.array([known.get(part.format(name), 0.0) for name in names])

    simple = [friction[name].coulomb_viscous for name in names]
    plain = [friction[name].law.name == START_LAW for name in names]
    coulomb = np.where(plain, values("{}/coulomb"), [one.coulomb for one in simple])
    viscous = np.where(plain, values("{}/viscous"), [one.viscous for one in simple])
    means = {joint: dict(zip(one.columns.harmonics, wave.reshape(-1, 2), strict=True))
             for one in torques if one.columns.waves is not None
             for joint, wave in zip(one.joints, one.columns.waves, strict=True)}  # fmt: skip
    waves = [
        (k, values(f"{{}}/coulomb_cos_{k:g}"), values(f"{{}}/coulomb_sin_{k:g}"),
         np.array([means.get(name, {}).get(k, (0.0, 0.0)) for name in names]))
        for k in sorted({k for one in torques for k in one.columns.harmonics})
    ]  # fmt: skip

    def dry(position: FloatArray) -> FloatArray:
        parts = [c * (np.cos(k * position) - m[:, 0]) + s * (np.sin(k * position) - m[:, 1]) for k, c, s, m in waves]
        return np.maximum(coulomb + sum(parts), 0.0)

    return Drives(
        names,
        log.inputs[KP],
        log.inputs[KD],
        frictionloss=dry,
        damping=viscous,
        armature=np.maximum(values("Ia {}"), 0.0),
        offset=values("{}/offset"),
        delay=np.maximum([delay[name] for name in names], 0.0),
        late_command=all(one.late_command for one in torques),
        held=any(one.hold for one in torques),
    )


def _known(found: Identification) -> dict[str, float]:
    """Parameters by name; those that go with the nearest real bodies, where there are such."""
    return dict(zip(found.parameters.names, found.parameters.values.tolist(), strict=True)) | dict(found.bodies)
