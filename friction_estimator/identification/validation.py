"""How well identified friction, and inertia, predict recordings that took no part in the identification."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from friction_estimator.config.robot import Coupling
from friction_estimator.errors import InputError, choices
from friction_estimator.identification.fixed_base_model import FixedBaseModel
from friction_estimator.identification.inverse_dynamics.observation import observe, parallel_cutoff
from friction_estimator.identification.joint_log import FRICTION, Motion, at_motors
from friction_estimator.identification.linear_problem import rms
from friction_estimator.identification.result import FrictionSamples, Identification, JointLaw, JointScore
from friction_estimator.identification.rigid_body import drive_inertia_columns
from friction_estimator.robot.transmission import Transmission
from friction_estimator.types import BoolArray, FloatArray

_FIGURE_SAMPLES = 3000
_WORSE = 1.5
"""Errors larger than this many times the held-out error of the identification are worth a sentence."""


@dataclass(frozen=True, slots=True)
class KnownRigidBody:
    """Rigid body with known standard parameters: it has no unknown columns.

    Attributes
    ----------
    model : of the recorded joints
    inertia : standard parameters by name, e.g. ``Izz knee`` or the drive inertia ``Ia knee``; those that are missing
        are zero. Empty: the values of the URDF
    coupling : of the drives, None where every joint has its own
    """

    model: FixedBaseModel
    inertia: Mapping[str, float]
    coupling: Coupling | None = None

    def columns(self, motion: Motion) -> tuple[FloatArray, FloatArray]:
        """Columns (N, n, 0), and torque (N, n) [N m] of links, payload and drives."""
        q, v, a = motion.position, motion.velocity, motion.acceleration
        model, regressor = self.model, self.model.regressor(q, v, a)
        links = model.urdf_parameters
        if self.inertia:
            links = np.array([self.inertia.get(name, 0.0) for name in model.standard_names])
        if motion.payload is not None:
            links = links + model.payload_parameters(motion.payload)
        names, drives = drive_inertia_columns(model.joint_names, a, self.coupling)
        known = regressor @ links + drives @ np.array([self.inertia.get(name, 0.0) for name in names])
        return np.zeros((*q.shape, 0)), known


def validate_torque(
    identification: Identification, motions: Sequence[Motion], model: FixedBaseModel, coupling: Coupling | None = None
) -> Identification:
    """Compare motor torques with those that identified inertia and friction predict, joint by joint.

    Both sides pass the same low-pass as in the identification. Samples slower than all that the identification used
    are left out.

    Parameters
    ----------
    identification : friction of the joints (or of their motors); where it has no inertia, that of the URDF is used
    motions : with the motor torques of the joints of the model
    model : of these joints
    coupling : of motors that move several joints together

    Returns
    -------
    The same identification with the scores and samples of these motions.

    Raises
    ------
    InputError
        When a motion has no torque, or a joint has no identified friction.
    """
    motors = Transmission.of(coupling, model.joint_names)
    if not set(motors.names) <= set(identification.friction.joint_names):
        motors = Transmission.of(None, model.joint_names)
    cutoffs = [parallel_cutoff(motion)[0] for motion in motions]
    rows = []
    for one in observe(motions, KnownRigidBody(model, identification.inertia, coupling), cutoffs, motors):
        friction = _friction(identification, motors.names, one.motion.velocity, one.load)
        kept = one.filter.kept
        rows.append(
            _Rows(
                velocity=one.motion.velocity[kept],
                load=one.load[kept],
                torque=one.torque,
                rigid=one.filter.apply(one.known),
                friction=one.filter.apply(friction),
            )
        )
    return _with_scores(identification, motors.names, _Rows.stacked(rows), motions)


def validate_friction(
    identification: Identification, motions: Sequence[Motion], coupling: Coupling | None = None
) -> Identification:
    """Compare measured friction with that of the identified laws; arguments and errors as :func:`validate_torque`."""
    motors = Transmission.of(coupling, motions[0].joint_names)
    rows = []
    for motion in (at_motors(motion, motors) for motion in motions):
        measured = motion.inputs.get(FRICTION)
        if measured is None:
            raise InputError(f"{motion.name} has no measured friction, 'friction/<joint>'")
        load = np.zeros_like(measured) if motion.effort is None else motion.effort
        friction = _friction(identification, motors.names, motion.velocity, load)
        rows.append(_Rows(motion.velocity, load, measured, np.full_like(measured, np.nan), friction))
    return _with_scores(identification, motors.names, _Rows.stacked(rows), motions)


@dataclass(frozen=True, slots=True)
class _Rows:
    """Signals of all motions, each (K, n): torque as measured, and its predicted parts."""

    velocity: FloatArray
    load: FloatArray
    torque: FloatArray
    rigid: FloatArray
    friction: FloatArray

    @classmethod
    def stacked(cls, rows: Sequence[_Rows]) -> _Rows:
        return cls(*(np.concatenate([getattr(one, name) for one in rows]) for name in cls.__slots__))


def _friction(
    identification: Identification, names: Sequence[str], velocity: FloatArray, load: FloatArray
) -> FloatArray:
    """Friction torque (N, n) of the identified laws."""
    known = identification.friction
    missing = [name for name in names if name not in known.joint_names]
    if missing:
        raise InputError(
            f"no friction was identified for {choices(missing)}; the file has {choices(known.joint_names)}"
        )
    laws = [JointLaw.of(known, name) for name in names]
    return np.column_stack([law.torque(velocity[:, k], load[:, k]) for k, law in enumerate(laws)])


def _with_scores(
    identification: Identification, names: Sequence[str], rows: _Rows, motions: Sequence[Motion]
) -> Identification:
    slowest = {
        one.joint: float(np.abs(one.velocity[one.used]).min()) for one in identification.samples if one.used.any()
    }
    scores, samples = [], []
    for joint, name in enumerate(names):
        usable = np.isfinite(rows.torque[:, joint]) & (np.abs(rows.velocity[:, joint]) >= slowest.get(name, 0.0))
        scores.append(_score(name, rows, joint, usable))
        samples.append(_samples(identification, name, rows, joint, usable))
    before = {score.joint: score for score in identification.scores}
    return replace(
        identification,
        scores=tuple(scores),
        samples=tuple(samples),
        verdicts=tuple(_verdict(score, before.get(score.joint)) for score in scores),
        provenance=replace(
            identification.provenance,
            data=tuple((motion.name, motion.digest) for motion in motions),
            choices=tuple(f"{motion.name}: {choice}" for motion in motions for choice in motion.choices),
        ),
    )


def _score(name: str, rows: _Rows, joint: int, usable: BoolArray) -> JointScore:
    torque, rigid, friction = (part[usable, joint] for part in (rows.torque, rows.rigid, rows.friction))
    without_friction = torque - rigid
    model = torque - friction if np.isnan(rigid).all() else without_friction - friction
    errors = (rms(torque), rms(without_friction), rms(model))
    return JointScore(name, *errors, fit_error=float("nan"), samples=int(usable.sum()))


def _samples(identification: Identification, name: str, rows: _Rows, joint: int, usable: BoolArray) -> FrictionSamples:
    """Friction over velocity, thinned out for figures."""
    kept = slice(None, None, max(1, len(rows.velocity) // _FIGURE_SAMPLES))
    velocity, load = rows.velocity[kept, joint], rows.load[kept, joint]
    rigid = np.nan_to_num(rows.rigid[kept, joint])
    return FrictionSamples(
        joint=name,
        velocity=velocity,
        friction=rows.torque[kept, joint] - rigid,
        load=load,
        fitted=rows.friction[kept, joint],
        sigma=JointLaw.of(identification.friction, name).predict(velocity, load)[1],
        used=usable[kept],
    )


def _verdict(score: JointScore, before: JointScore | None) -> str:
    """One sentence about a joint, compared with the held-out error of the identification."""
    if not score.samples:
        return (
            f"{score.joint}: never faster than the slowest sample of the identification; its friction is not validated"
        )
    share = f" ({100.0 * score.relative_error:.1f} %)" if score.torque_rms > 0.0 else ""
    quality = f"{score.joint}: RMS error {score.model_error:.3g} N m of {score.torque_rms:.3g} N m torque{share}"
    if before is None or not before.model_error > 0.0:
        return quality
    ratio = score.model_error / before.model_error
    compared = f"{quality}, {ratio:.1f} times the held-out error of the identification"
    if ratio > _WORSE:
        return f"{compared}: check whether friction, payload or speed range differ from the identification"
    return compared
