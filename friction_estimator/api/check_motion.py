"""``check_motion``: which parameters a motion can show at all, by simulated recordings of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Unpack

import numpy as np

from friction_estimator.api.experiments import Recordings, Stage, Warn, read_experiments, silent
from friction_estimator.api.identify import identify
from friction_estimator.errors import ConfigError
from friction_estimator.identification.fixed_base_model import FixedBaseModel
from friction_estimator.identification.inverse_dynamics.options import LATE_TORQUE
from friction_estimator.identification.joint_log import (
    COMMAND,
    COMMANDED,
    KD,
    KP,
    JointLog,
)
from friction_estimator.identification.linear_problem import FOLDS, rms
from friction_estimator.identification.methods import IdentifyOptions
from friction_estimator.identification.recording.motion import to_motions, usual_treatment
from friction_estimator.identification.recording.torque_checks import Gain
from friction_estimator.identification.result import VAGUE, ParameterTable
from friction_estimator.io.robot import Robot, as_robot
from friction_estimator.types import AnyPath


@dataclass(frozen=True, slots=True)
class ParameterCheck:
    """Errors of one identified parameter in simulated recordings of a motion, in which its true value is known.

    Attributes
    ----------
    name : e.g. ``elbow/viscous``, or ``mx shoulder + 0.4 m elbow`` (a base parameter with what it groups)
    unit : of truth, error and sigma
    truth : mean of what was simulated
    error : RMS of the identified values less the true ones
    sigma : RMS of the standard deviations
    inside : share of the identified values within two standard deviations of the true ones
    """

    name: str
    unit: str
    truth: float
    error: float
    sigma: float
    inside: float

    @property
    def verdict(self) -> str:
        """Whether the motion shows the parameter, in words."""
        if self.inside < _LEAST_COVERAGE:
            return "wrong: sigma is too small"
        return "shown" if self.sigma < VAGUE * abs(self.truth) else "not shown"


_LEAST_COVERAGE = 0.5
"""Share of the values that must lie within two standard deviations."""
_FRICTION_SHARE, _ARMATURE_SHARE, _LARGEST_FACTOR = 0.1, 0.1, 1.5
"""Simulated Coulomb friction, and viscous friction at 1 rad/s, in RMS torques of the rigid body; armature in inertias
of the joint; and the factor by which each differs at most."""
_TORQUE_NOISE, _POSITION_NOISE, _LARGEST_DELAY = 0.02, 1e-4, 0.01
"""Noise of torques in RMS torques, noise of positions [rad], and largest delay of drives [s]."""


def check_motion(
    recordings: Recordings,
    robot: AnyPath | Robot,
    *,
    kp: Gain | None = None,
    kd: Gain | None = None,
    joints: Sequence[str] | None = None,
    repeats: int = 4,
    seed: int = 0,
    stage: Stage | None = None,
    warn: Warn | None = None,
    **options: Unpack[IdentifyOptions],
) -> tuple[ParameterCheck, ...]:
    """Simulate a motion of a robot with known parameters, identify these, and compare.

    Bodies are those of the URDF. Coulomb and viscous friction, armature and, of drives that get positions, the delay
    are drawn at random for every repetition: sizes that are usual for the torques of the motion. Commands of drives are
    simulated in MuJoCo, recorded positions by inverse dynamics.

    Parameters
    ----------
    recordings, robot, kp, kd, joints : as for :func:`~friction_estimator.identify`; no torque is needed
    repeats : number of simulated recordings
    seed : of parameters and noise
    stage : called with the title of each long piece of work; returns a context manager of its progress
    warn : called with every warning about the data as it is found
    options : further options of :func:`~friction_estimator.identify`

    Returns
    -------
    checks : one for every identified parameter

    Raises
    ------
    FrictionEstimatorError
        When the recording cannot be used, or the base of the robot is not fixed.

    Examples
    --------
    >>> import friction_estimator as fe
    >>> checks = fe.check_motion(fe.example("arm"), "arm", law="coulomb_viscous", repeats=1)
    >>> [one.name for one in checks if one.verdict != "shown"]
    ['mz shoulder']
    """
    working = stage or silent
    chosen, warnings = as_robot(robot), list[str]()
    if not chosen.config.robot.fixed_base or chosen.config.robot.coupling.coupling() is not None:
        raise ConfigError(
            f"the robot {chosen.name!r} has a floating base or a robot.coupling: motions are checked of "
            "robots with a fixed base (robot.fixed_base) and without robot.coupling"
        )
    experiments = read_experiments(recordings, chosen, working, warn or warnings.append, joints=joints, kp=kp, kd=kd)
    log, random = experiments.logs[0], np.random.default_rng(seed)
    gains = (kp, kd) if COMMANDED in log.inputs else (None, None)
    found = list[tuple[ParameterTable, dict[str, float]]]()
    with working("simulating and identifying") as progress:
        for number in range(repeats):
            simulated, truth = _simulated(log, chosen.urdf_xml, random, options)
            found.append((identify(simulated, chosen, kp=gains[0], kd=gains[1], **options).parameters, truth))
            if progress is not None:
                progress(number + 1, repeats)
    return tuple(_checks(found))


def _simulated(
    log: JointLog, urdf_xml: str, random: np.random.Generator, options: Mapping[str, Any]
) -> tuple[JointLog, dict[str, float]]:
    """A recording of the same motion, or of the same commands, with the true parameters by name.

    Commands are late and held, unless the options state something else.
    """
    names, n = log.joint_names, len(log.joint_names)
    model, motion = FixedBaseModel(urdf_xml, names), to_motions([log], usual_treatment([log]), FOLDS)[0]
    q, v, a = motion.position, motion.velocity, motion.acceleration
    rigid, still = model.torque(q, v, a), np.zeros((1, n))
    size = np.sqrt(np.mean(rigid**2, axis=0))
    inertia = [model.torque(q[:1], still, axis) - model.torque(q[:1], still, still) for axis in np.eye(n)[:, None]]
    coulomb, viscous, armature = _LARGEST_FACTOR ** random.uniform(-1.0, 1.0, (3, n))
    coulomb, viscous = coulomb * _FRICTION_SHARE * size, viscous * _FRICTION_SHARE * size
    armature *= _ARMATURE_SHARE * np.diagonal(np.concatenate(inertia))
    truth = dict(zip(model.standard_names, model.urdf_parameters.tolist(), strict=True))
    for kind, values in (("{}/coulomb", coulomb), ("{}/viscous", viscous), ("Ia {}", armature)):
        truth |= {kind.format(name): value for name, value in zip(names, values.tolist(), strict=True)}
    if COMMANDED in log.inputs:
        from friction_estimator.simulation.simulator import Drives, rollout  # MuJoCo is needed here only

        late = float(random.uniform(0.0, _LARGEST_DELAY))
        truth |= {f"{name}/delay": late for name in names} | {f"{name}/encoder_offset": 0.0 for name in names}
        drives = Drives(
            names, log.inputs[KP], log.inputs[KD], lambda _: coulomb, viscous, armature, np.zeros(n), np.full(n, late),
            late_command=options.get("late") != LATE_TORQUE, held=options.get("hold") is not False,
        )  # fmt: skip
        position = rollout(urdf_xml, drives, log.time, log.inputs[COMMAND], log.position[0])
        inputs = {kind: log.inputs[kind] for kind in (COMMAND, KP, KD)}
        noisy = position + _POSITION_NOISE * random.normal(size=position.shape)
        return JointLog(log.name, names, log.time, noisy, inputs=MappingProxyType(inputs)), truth
    torque = rigid + a * armature + coulomb * np.sign(v) + viscous * v
    torque += _TORQUE_NOISE * size * random.normal(size=torque.shape)
    noisy = q + _POSITION_NOISE * random.normal(size=q.shape)
    return JointLog(log.name, names, motion.time, noisy, effort=torque), truth


def _checks(found: Sequence[tuple[ParameterTable, dict[str, float]]]) -> Sequence[ParameterCheck]:
    """Errors and standard deviations of every parameter over all repetitions."""
    checks = []
    for name, unit in zip(found[0][0].names, found[0][0].units, strict=True):
        rows = []
        for table, truth in found:
            if name not in table.names:
                continue
            place = table.names.index(name)
            value = truth.get(name, np.nan if table.reference is None else float(table.reference[place]))
            if np.isfinite(value):
                rows.append((value, table.values[place] - value, table.sigma[place]))
        if rows:
            values, error, sigma = np.array(rows).T
            inside = float(np.mean(np.abs(error) <= 2.0 * sigma))
            checks.append(ParameterCheck(name, unit, float(values.mean()), rms(error), rms(sigma), inside))
    return checks
