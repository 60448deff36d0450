"""Rollouts: a robot simulated in MuJoCo under the recorded commands of its drives, compared and fitted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import least_squares

from friction_estimator.errors import ConfigError, InputError, SimulationError, choices
from friction_estimator.identification.inverse_dynamics.delay import USUAL_DELAY
from friction_estimator.identification.inverse_dynamics.options import (
    InverseDynamicsOptions,
    friction_motors,
    live_laws,
)
from friction_estimator.identification.joint_log import COMMAND, COMMANDED, KD, KP, JointLog
from friction_estimator.identification.linear_problem import ORDINARY, LinearProblem
from friction_estimator.identification.prediction import TorquePrediction
from friction_estimator.identification.result import Identification, ParameterTable
from friction_estimator.identification.uncertainty import allowing_for_wrong_model, solve
from friction_estimator.io.export.exporter import joint_frictions
from friction_estimator.io.export.robot_models import urdf_with_bodies
from friction_estimator.laws.identified import IdentifiedParameters
from friction_estimator.laws.joint_laws import START_LAW
from friction_estimator.metrics import root_mean_square
from friction_estimator.robot.urdf import parse_urdf
from friction_estimator.types import FloatArray, Progress

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


ROLLOUT = "rollout"
FITS = "torque", ROLLOUT
"""What a fit makes small: errors of the torque, or of the positions of the simulated robot."""
_START_FACTORS = (1.0, 0.5, 2.0)
"""Sizes of friction and armature that a fit starts from, in those of the linear result."""
_USUAL_SIZES = (0.1, 0.1, 0.01, 0.1)
"""Usual friction loss [N m], damping [N m s/rad], armature [kg m^2] and offset [N m]."""
_GRADIENT_STEP = 1e-2
"""Step of the numerical gradient, in usual sizes."""
_MAX_EVALUATIONS, _CONVERGED_CHANGE = 15, 1e-4
"""Evaluations of a fit at most, and relative change of error and parameters at which it has converged."""
_UNSTABLE_ERROR = 3.0
"""Error [rad] of joints whose drives are not stable."""


@dataclass(frozen=True, slots=True)
class _Limb:
    """One limb under the recorded commands, as a function of its parameters.

    These (4 n + 1,) are friction loss, damping, armature and offset of every joint, and one delay, in usual sizes.
    """

    urdf_xml: str
    logs: tuple[JointLog, ...]
    drives: tuple[Drives, ...]
    coulomb: FloatArray

    @property
    def scale(self) -> FloatArray:
        """(4 n + 1,) usual sizes, in SI units."""
        return np.append(np.repeat(_USUAL_SIZES, self.coulomb.size), USUAL_DELAY)

    @property
    def start(self) -> FloatArray:
        """(4 n + 1,) values at which the search starts, those of the drives as identified, over their scales."""
        one = self.drives[0]
        parts = self.coulomb, one.damping, one.armature, one.offset, [one.delay.mean()]
        return np.concatenate(parts) / self.scale

    def errors(self, values: FloatArray) -> FloatArray:
        """Simulated less recorded positions (R, n) of all recordings [rad]."""
        from friction_estimator.simulation.simulator import rollout

        given = values * self.scale
        coulomb, damping, armature, offset = given[:-1].reshape(4, -1)
        errors = []
        for log, one in zip(self.logs, self.drives, strict=True):

            def dry(position: FloatArray, one: Drives = one) -> FloatArray:
                return np.maximum(one.frictionloss(position) + coulomb - self.coulomb, 0.0)

            drives = replace(
                one, frictionloss=dry, damping=damping, armature=armature, offset=offset,
                delay=np.full(coulomb.size, given[-1]),
            )  # fmt: skip
            try:
                found = rollout(self.urdf_xml, drives, log.time, log.inputs[COMMAND], log.position[0])
                errors.append(found - log.position)
            except SimulationError:
                errors.append(np.full(log.position.shape, _UNSTABLE_ERROR))
        return np.concatenate(errors)

    def gradient(self, values: FloatArray) -> FloatArray:
        """Derivatives (R n, 4 n + 1) of the errors."""
        ahead = [self.errors(values + _GRADIENT_STEP * axis).ravel() for axis in np.eye(values.size)]
        return (np.column_stack(ahead) - self.errors(values).reshape(-1, 1)) / _GRADIENT_STEP

    def fitted(self) -> FloatArray:
        """Parameters (4 n + 1,) of the best of several least-squares fits."""
        n, weight = self.coulomb.size, 1.0 / np.sqrt(sum(log.position.size for log in self.logs))
        lower = np.where(np.arange(4 * n + 1) // n == 3, -np.inf, 0.0)
        fits = []
        for size in _START_FACTORS:
            start = self.start * np.append(np.repeat((size, size, size, 1.0), n), 1.0)
            fits.append(
                least_squares(
                    lambda values: weight * self.errors(values).ravel(),
                    np.maximum(start, lower + _GRADIENT_STEP),
                    lambda values: weight * self.gradient(values),
                    bounds=(lower, np.inf),
                    ftol=_CONVERGED_CHANGE,
                    xtol=_CONVERGED_CHANGE,
                    max_nfev=_MAX_EVALUATIONS,
                )
            )
        return np.asarray(min(fits, key=lambda one: float(one.cost)).x)

    def covariance(self, values: FloatArray) -> FloatArray:
        """Covariance (4 n + 1, 4 n + 1) in SI units, of blocks of time as long as errors remember.

        It holds what half a step of the simulation changes, during which torques are constant.
        """
        from friction_estimator.simulation.simulator import ROLLOUT_STEP

        n, names = self.coulomb.size, tuple(map(str, range(values.size)))
        errors, sizes = self.errors(values), [log.time.size for log in self.logs]
        instant = np.repeat(np.arange(len(errors)), n)
        recording = np.repeat(np.repeat(np.arange(len(sizes)), sizes), n)
        problem = LinearProblem(
            names, names, self.gradient(values), -errors.ravel(), np.tile(np.arange(n), len(errors)), recording,
            np.zeros(values.size, dtype=bool), instant, recording,
        )  # fmt: skip
        fit = allowing_for_wrong_model(solve(problem, ORDINARY), self._conditions())
        half = 0.5 * ROLLOUT_STEP
        kp, kd = (np.mean([one.mean(axis=0) for one in gains], axis=0)
                  for gains in zip(*((one.kp, one.kd) for one in self.drives), strict=True))  # fmt: skip
        shift = np.concatenate((np.zeros(n), half * kp, half * kd, np.zeros(n), [half]))
        return np.asarray(fit.covariance * np.outer(self.scale, self.scale) + np.outer(shift, shift))

    def _conditions(self) -> tuple[FloatArray, FloatArray]:
        """Velocity and position (R n,) of every error: what the model lacks may depend on them."""
        velocity = [np.gradient(log.position, log.time, axis=0) for log in self.logs]
        return np.concatenate(velocity).ravel(), np.concatenate([log.position for log in self.logs]).ravel()


def refuse_rollout_fit(options: object, logs: Sequence[JointLog], urdf_xml: str | None) -> None:
    """Refuse, before the identification with these options, what :func:`fit_rollouts` would refuse after it."""
    if isinstance(options, InverseDynamicsOptions):
        motors = friction_motors(options, logs[0].joint_names)
        _refuse_laws(live_laws(motors.names, options), options.coupling is not None)
    rollout_urdf(logs, urdf_xml)


def _refuse_laws(laws: Sequence[str], coupled: bool) -> None:
    if set(laws) != {START_LAW} or coupled:
        raise ConfigError(
            f"fit 'rollout' needs the law {START_LAW!r} for all joints, each with one motor: choose this law (law=, "
            "--law) and leave out robot.coupling, or leave out the fit"
        )


def fit_rollouts(
    found: Identification, logs: Sequence[JointLog], urdf_xml: str | None, progress: Progress | None = None
) -> Identification:
    """Refine friction, armature, offsets and delay by the position error of the rollout, limb by limb.

    Starts from the linear result, whose links it keeps. Standard deviations are at least those of the linear result:
    neither fit can find more about the timing of the drives than the recording shows.

    Parameters
    ----------
    found : by `inverse_dynamics` from the commands of drives, with the law ``coulomb_viscous``
    logs : that it was identified from
    urdf_xml : text of the URDF
    progress : called with the number of finished limbs, and of all

    Raises
    ------
    ConfigError
        When a joint has another law, or motors move several joints together.
    InputError
        When there is no URDF, or no recording with commands of drives.
    """
    limbs = [one for one in found.predictions if isinstance(one, TorquePrediction)]
    _refuse_laws(found.friction.law_names, any(one.coupling is not None for one in limbs))
    urdf_xml = rollout_urdf(logs, urdf_xml)
    before = rollout_scores(found, logs, urdf_xml)
    bodies = urdf_with_bodies(urdf_xml, found.bodies)
    for number, limb in enumerate(limbs):
        own = tuple(log.select(limb.joints) for log in logs)
        drives = tuple(_identified_drives(found, log) for log in own)
        known = _known(found)
        coulomb = np.array([known[f"{name}/coulomb"] for name in limb.joints])
        part = _Limb(bodies, own, drives, coulomb)
        values = part.fitted()
        found = _refined(found, limb, values * part.scale, part.covariance(values), own)
        if progress is not None:
            progress(number + 1, len(limbs))
    after = rollout_scores(found, logs, urdf_xml)
    notes = [
        f"{new.recording}: positions of {new.joint} in the rollout are wrong by {1e3 * new.identified:.2f} mrad, "
        f"{1e3 * old.identified:.2f} before the fit of the rollout"
        for old, new in zip(before, after, strict=True)
    ]
    notes.append("held-out errors and curves are those of the linear result from which the fit of the rollout started")
    method = f"{found.provenance.method}, {ROLLOUT}"
    return replace(
        found, provenance=replace(found.provenance, method=method, choices=(*found.provenance.choices, *notes))
    )


_Rows = dict[str, tuple[str, float, float]]
"""Unit, value and standard deviation of parameters by name."""


def _refined(
    found: Identification, limb: TorquePrediction, values: FloatArray, covariance: FloatArray, logs: Sequence[JointLog]
) -> Identification:
    """The result with other parameters (4 n + 1,) of one limb, SI units."""
    rows = _rows(found.parameters, limb, values, np.sqrt(np.diagonal(covariance)), logs)
    new = {name: value for name, (_, value, _) in rows.items()}
    names = [one.name for one in limb.columns.described]
    links = {name: value for name, value in found.bodies.items() if "/" not in name} or dict(limb.inertia)
    refined = replace(
        limb,
        friction=tuple(new.get(name, value) for name, value in zip(names, limb.friction, strict=True)),
        inertia={**links, **{name: value for name, value in new.items() if name.startswith("Ia ")}},
        delay=new[f"{limb.joints[0]}/delay"],
    )
    return replace(
        found,
        friction=_refined_laws(found.friction, limb.joints, rows, covariance),
        parameters=_refined_table(found.parameters, rows),
        inertia={**found.inertia, **refined.inertia},
        bodies={name: new.get(name, value) for name, value in found.bodies.items()},
        predictions=tuple(refined if one is limb else one for one in found.predictions),
    )


def _rows(
    table: ParameterTable, limb: TorquePrediction, values: FloatArray, sigma: FloatArray, logs: Sequence[JointLog]
) -> _Rows:
    """Parameters (4 n + 1,) of one limb; their standard deviations are at least those of the table."""
    n, rows = len(limb.joints), _Rows()
    for k, name in enumerate(limb.joints):
        kp = float(np.mean([log.inputs[KP][:, k].mean() for log in logs]))
        for kind, unit, place, factor in (
            (f"{name}/coulomb", "N m", k, 1.0),
            (f"{name}/viscous", "N m s/rad", n + k, 1.0),
            (f"Ia {name}", "kg m^2", 2 * n + k, 1.0),
            (f"{name}/offset", "N m", 3 * n + k, 1.0),
            (f"{name}/encoder_offset", "rad", 3 * n + k, 1.0 / kp),
            (f"{name}/delay", "s", 4 * n, 1.0),
        ):
            old = table.sigma[table.names.index(kind)] if kind in table.names else 0.0
            rows[kind] = unit, float(values[place] * factor), max(float(sigma[place] * factor), float(old))
    return rows


def _refined_table(table: ParameterTable, rows: _Rows) -> ParameterTable:
    """The table with these rows at its end, in place of those of the same names."""
    kept = [k for k, name in enumerate(table.names) if name not in rows]
    reference = [np.nan] * len(table.names) if table.reference is None else table.reference.tolist()
    units, values, sigma = zip(*rows.values(), strict=True)
    return replace(
        table,
        names=(*(table.names[k] for k in kept), *rows),
        units=(*(table.units[k] for k in kept), *units),
        values=np.array([*table.values[kept], *values]),
        sigma=np.array([*table.sigma[kept], *sigma]),
        reference=np.array([*(reference[k] for k in kept), *[np.nan] * len(rows)]),
        identifiable=None,
    )


def _refined_laws(
    friction: IdentifiedParameters, joints: Sequence[str], rows: _Rows, covariance: FloatArray
) -> IdentifiedParameters:
    """The laws with the values of the rows; covariances are those of the fit, scaled to the sigma of the rows."""
    law_values, law_covariance = friction.values.copy(), friction.covariance.copy()
    sigma = np.sqrt(np.diagonal(covariance))
    for k, name in enumerate(joints):
        row, own = friction.joint_names.index(name), np.array([k, len(joints) + k])
        values, wide = np.array([rows[f"{name}/{kind}"][1:] for kind in ("coulomb", "viscous")]).T
        law_values[row, :2] = values
        law_covariance[row, :2, :2] = covariance[np.ix_(own, own)] * np.outer(wide / sigma[own], wide / sigma[own])
    return replace(friction, values=law_values, covariance=law_covariance)
