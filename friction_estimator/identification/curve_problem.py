"""Measured friction over velocity, the least-squares problem of a law through it, and what a fit predicts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from friction_estimator.config.robot import Coupling
from friction_estimator.errors import InputError, choices
from friction_estimator.identification.joint_log import FRICTION, SIGMA, JointLog, Motion, Treatment, at_motors
from friction_estimator.identification.linear_problem import FOLDS
from friction_estimator.identification.recording.zero_phase import to_motions
from friction_estimator.identification.result import JointLaw
from friction_estimator.identification.scoring import Rows
from friction_estimator.laws import FrictionLaw, Parameter, Role, make_law
from friction_estimator.laws.joint_laws import IdentifiedParameters
from friction_estimator.laws.law import torque_gradient
from friction_estimator.robot.transmission import Transmission
from friction_estimator.types import BoolArray, FloatArray, IntArray

_LARGEST = 10.0
"""Largest torque of a single term of a law, as a multiple of the largest friction that was seen."""
_GRID = 50


@dataclass(frozen=True, slots=True)
class CurveSamples:
    """Measured friction of one joint.

    Attributes
    ----------
    velocity : (N,) [rad/s]
    friction : (N,) with the sign of the velocity it resists [N m]
    load : (N,) torque through the joint [N m]; None when unknown
    segment : (N,) which stretch of time a sample comes from, rising over all recordings
    recording : (N,) which recording; None: there is one
    """

    velocity: FloatArray
    friction: FloatArray
    load: FloatArray | None
    segment: IntArray
    recording: IntArray | None = None

    @property
    def torque_rms(self) -> float:
        """RMS of the friction: the error of "predict zero" [N m]."""
        return float(np.sqrt(np.mean(self.friction**2)))

    @property
    def top_speed(self) -> float:
        """Largest speed [rad/s]."""
        return float(np.abs(self.velocity).max())

    def select(self, rows: BoolArray | IntArray | slice) -> CurveSamples:
        """These rows of it."""
        load = None if self.load is None else self.load[rows]
        recording = None if self.recording is None else self.recording[rows]
        return CurveSamples(self.velocity[rows], self.friction[rows], load, self.segment[rows], recording)

    def thinned(self, largest: int) -> CurveSamples:
        """Evenly spaced rows, at most ``largest`` of them."""
        return self.select(slice(None, None, max(1, -(-self.velocity.size // largest))))


class WithOffset(FrictionLaw):
    """A law and a constant torque, its last parameter."""

    def __init__(self, law: FrictionLaw) -> None:
        self.law, self.name, self.depends_on_load = law, law.name, law.depends_on_load
        self.parameters = (*law.parameters, Parameter("offset", Role.OFFSET, bounds=(-math.inf, math.inf)))

    def torque(self, parameters: FloatArray, velocity: FloatArray, load: FloatArray | None = None) -> FloatArray:
        """Torque of the law and the offset, see :meth:`FrictionLaw.torque`."""
        return np.asarray(self.law.torque(parameters[:, :-1], velocity, load) + parameters[:, -1])

    def stribeck_region(self, parameters: FloatArray) -> FloatArray:
        """That of the law."""
        return self.law.stribeck_region(parameters[..., :-1])


class CurveProblem:
    """Residuals of a law, and bounds, in coordinates ``z`` of size one.

    Parameters that the torque is linear in are counted in the largest friction seen, those that shape the curve over
    orders of magnitude by their logarithm.

    Parameters
    ----------
    law : any of the registry
    samples : finite; with a load where the law needs one

    Attributes
    ----------
    shape : (p) True for parameters that the torque is not linear in
    lower, upper : (p,) bounds of the parameters, from the law's signs and ranges and from the size of the friction

    Raises
    ------
    InputError
        When there are not more samples than parameters, or nothing moves.
    """

    def __init__(self, law: FrictionLaw, samples: CurveSamples) -> None:
        p = len(law.parameter_names)
        if samples.friction.size <= p:
            raise InputError(f"{samples.friction.size} usable samples cannot give the {p} parameters of {law.name!r}")
        if samples.top_speed == 0.0 or samples.torque_rms == 0.0:
            raise InputError("velocity or friction is zero everywhere: there is no friction curve to fit")
        self.law, self.samples = law, samples
        low, high = np.array([parameter.bounds for parameter in law.parameters]).T
        self.shape: BoolArray = np.array([parameter.role is Role.SHAPE for parameter in law.parameters])
        low, high = np.where(self.shape, low, 0.0), np.where(self.shape, high, 0.0)
        self._log = self.shape & (low > 0.0)
        self._scale = np.where(self.shape, 1.0, self._linear_scales(np.sqrt(np.maximum(low, 1e-3) * high)))
        self.upper = np.where(self.shape, high, _LARGEST * self._scale)
        self.lower = np.where(self.shape, low, np.where(law.nonnegative, 0.0, -self.upper))

    def _linear_scales(self, shape: FloatArray) -> FloatArray:
        """Which value of each linear parameter gives the largest friction seen, at a shape in the middle, (p,)."""
        samples = self.samples
        speeds = np.concatenate((samples.velocity, samples.top_speed * np.linspace(-1.0, 1.0, _GRID)))
        load = None if samples.load is None else np.append(samples.load, np.full(_GRID, np.abs(samples.load).max()))
        largest = np.abs(linear_columns(self.law, np.where(self.shape, shape, 0.0), self.shape, speeds, load)).max(
            axis=0
        )
        return np.abs(samples.friction).max() / np.where(largest > 0.0, largest, 1.0)

    def to_z(self, values: FloatArray) -> FloatArray:
        """Coordinates (p,) of parameters (p,)."""
        return np.where(self._log, np.log(np.where(self._log, values, 1.0)), values / self._scale)

    def from_z(self, z: FloatArray) -> FloatArray:
        """Parameters (p,) at coordinates (p,)."""
        return np.where(self._log, np.exp(np.where(self._log, z, 0.0)), z * self._scale)

    def slopes(self, values: FloatArray) -> FloatArray:
        """Derivative of each parameter by its coordinate, (p,)."""
        return np.where(self._log, values, self._scale)

    def residual(self, z: FloatArray) -> FloatArray:
        """Law minus measurement, (N,) [N m]."""
        return torque_of(self.law, self.from_z(z), self.samples) - self.samples.friction

    def jacobian(self, z: FloatArray) -> FloatArray:
        """Derivative of :meth:`residual`, (N, p)."""
        values = self.from_z(z)
        return torque_gradient(self.law, values, self.samples.velocity, self.samples.load) * self.slopes(values)

    def linear_columns(self, values: FloatArray) -> FloatArray:
        """Torque that each linear parameter gives alone, at one N m of it and this shape, (N, p); zero for shapes."""
        return linear_columns(self.law, values, self.shape, self.samples.velocity, self.samples.load)


def torque_of(law: FrictionLaw, values: FloatArray, samples: CurveSamples) -> FloatArray:
    """Torque (N,) [N m] of a law with parameters (p,) at the velocities and loads of the samples."""
    return law.torque(values[None, :], samples.velocity, samples.load)


def linear_columns(
    law: FrictionLaw, values: FloatArray, shape: BoolArray, velocity: FloatArray, load: FloatArray | None
) -> FloatArray:
    """Torque per unit of each parameter that it is linear in, the shape being that of ``values``; (N, p)."""
    columns = np.zeros((velocity.size, values.size))
    for k in np.flatnonzero(~shape):
        alone = np.where(shape, values, 0.0)
        alone[k] = 1.0
        columns[:, k] = law.torque(alone[None, :], velocity, load)
    return columns


@dataclass(frozen=True, slots=True)
class CurveRows:
    """Measured friction of all motions, and the earlier velocity and load that it belongs to.

    Attributes
    ----------
    names : (n) of joints or motors
    velocity, friction, load : (K, n) [rad/s], [N m], [N m]; the load is NaN where it is unknown
    measured : (K, n) where friction was measured while the joint moves
    usable : (K, n) of these, fast and certain enough
    segment, recording : (K,) which stretch of time and recording
    time : (K,) [s]
    further : (K, n, e) other columns that the measured torque holds, beyond friction of the velocity
    """

    names: tuple[str, ...]
    velocity: FloatArray
    friction: FloatArray
    load: FloatArray
    measured: BoolArray
    usable: BoolArray
    segment: IntArray
    recording: IntArray
    time: FloatArray
    further: FloatArray

    def samples(self, joint: int) -> CurveSamples:
        """Usable samples of one joint."""
        rows = self.usable[:, joint]
        load = self.load[rows, joint]
        return CurveSamples(
            self.velocity[rows, joint],
            self.friction[rows, joint],
            None if np.isnan(load).any() else load,
            self.segment[rows],
            self.recording[rows],
        )


def curve_rows(motions: Sequence[Motion], delay: float, dead_zone: float = 0.0, max_sigma: float = np.inf) -> CurveRows:
    """Measured friction over the velocity and effort that it belongs to, from motions of the same joints.

    Parameters
    ----------
    motions : with ``inputs["friction"]`` [N m], NaN where nothing was measured
    delay : the friction of a row is that of so much earlier [s]
    dead_zone : slower samples are not used [rad/s]
    max_sigma : friction less certain than that, by ``inputs["friction_sigma"]``, is not used [N m]

    Raises
    ------
    InputError
        When a motion has no friction.
    """
    parts: dict[str, list[Any]] = {}
    segments = 0
    for number, motion in enumerate(motions):
        late, early = _shifted(motion, delay)
        friction = _friction(motion)[late]
        sigma = motion.inputs.get(SIGMA)
        certain = np.ones(friction.shape, dtype=bool) if sigma is None else sigma[late] <= max_sigma
        velocity = motion.velocity[early]
        measured = np.isfinite(friction) & np.isfinite(velocity) & motion.velocity.any(axis=0) & certain
        columns = {
            "velocity": velocity,
            "friction": friction,
            "load": np.full(velocity.shape, np.nan) if motion.effort is None else motion.effort[early],
            "measured": measured,
            "usable": measured & (np.abs(velocity) >= dead_zone),
            "segment": segments + motion.segment[early],
            "recording": np.full(early.size, number, dtype=np.intp),
            "time": motion.time[late],
            "further": _further(motion)[early],
        }
        for name, column in columns.items():
            parts.setdefault(name, []).append(column)
        segments += int(motion.segment.max(initial=0)) + 1
    joined: dict[str, Any] = {name: np.concatenate(part) for name, part in parts.items()}
    return CurveRows(motions[0].joint_names, **joined)


def _friction(motion: Motion) -> FloatArray:
    if FRICTION not in motion.inputs:
        raise InputError(
            f"{motion.name} has no measured friction: replay a bag first (topic joint_friction), or name a column "
            f"friction/JOINT; the columns other than position, velocity and effort are {choices(motion.inputs)}"
        )
    return motion.inputs[FRICTION]


FURTHER = "further/"
"""Inputs whose names begin with this are columns of the torque beyond friction."""


def _further(motion: Motion) -> FloatArray:
    """Columns (N, n, e) of the torque beyond friction."""
    found = [signal for kind, signal in motion.inputs.items() if kind.startswith(FURTHER)]
    return np.stack(found, axis=2) if found else np.zeros((*motion.velocity.shape, 0))


def _shifted(motion: Motion, delay: float) -> tuple[IntArray, IntArray]:
    """Rows whose friction counts, and the earlier rows it belongs to; gaps in time are not crossed."""
    rows = round(delay / motion.period)
    late = np.arange(rows, motion.time.size)
    early = late - rows
    together = np.abs(motion.time[late] - motion.time[early] - rows * motion.period) < 0.5 * motion.period
    return late[together], early[together]


@dataclass(frozen=True, slots=True)
class CurvePrediction:
    """Measured friction, as the method `friction_curve` fitted it.

    Attributes
    ----------
    joints : (n) or motors
    treatment : of the recordings
    laws : (n) of the registry
    values : (n) parameters of each; one more than the law has is a constant torque
    delay : by which friction is late [s]
    dead_zone : speed below which samples do not count [rad/s]
    max_sigma : standard deviation of the measured friction above which samples do not count [N m]
    coupling : of motors that move several joints together
    """

    joints: tuple[str, ...]
    treatment: Treatment
    laws: tuple[str, ...]
    values: tuple[tuple[float, ...], ...]
    delay: float = 0.0
    dead_zone: float = 0.0
    max_sigma: float = float("inf")
    coupling: Coupling | None = None

    def compared(self, logs: Sequence[JointLog], urdf_xml: str | None = None) -> tuple[Rows, list[Motion]]:
        """Rows of recordings with the input ``friction``, and the motions of their motors; no URDF is needed."""
        motors = Transmission.of(self.coupling, logs[0].joint_names)
        motions = [at_motors(motion, motors) for motion in to_motions(logs, self.treatment, FOLDS)]
        return self.rows(motions), motions

    def rows(self, motions: Sequence[Motion]) -> Rows:
        """Friction of all motions of the motors, and what is predicted of it."""
        return self.predicted(curve_rows(motions, self.delay, self.dead_zone, self.max_sigma))

    def predicted(self, rows: CurveRows) -> Rows:
        """Measured and predicted friction of these rows."""
        missing = [name for name in self.joints if name not in rows.names]
        if missing:
            raise InputError(f"the recordings have no friction of {choices(missing)}; they have {choices(rows.names)}")
        places = [rows.names.index(name) for name in self.joints]
        velocity, load = rows.velocity[:, places], rows.load[:, places]
        predicted = []
        for joint, (name, values) in enumerate(zip(self.laws, self.values, strict=True)):
            law = make_law(name)
            whole = law if len(values) == len(law.parameter_names) else WithOffset(law)
            predicted.append(whole.torque(np.array(values)[None, :], velocity[:, joint], load[:, joint]))
        friction = rows.friction[:, places]
        return Rows(
            names=self.joints,
            velocity=velocity,
            load=load,
            torque=friction,
            rigid=np.full(friction.shape, np.nan),
            friction=np.column_stack(predicted),
            usable=rows.usable[:, places],
            limits=np.full(len(places), np.inf),
        )


def curve_of_laws(
    friction: IdentifiedParameters, names: Sequence[str], treatment: Treatment, coupling: Coupling | None
) -> CurvePrediction:
    """Laws of another method, or of a live node, as curves of measured friction.

    Raises
    ------
    InputError
        When a joint has no identified friction.
    """
    missing = [name for name in names if name not in friction.joint_names]
    if missing:
        raise InputError(
            f"no friction was identified for {choices(missing)}; the file has {choices(friction.joint_names)}"
        )
    laws = [JointLaw.of(friction, name) for name in names]
    values = tuple(tuple(law.values.tolist()) for law in laws)
    return CurvePrediction(tuple(names), treatment, tuple(law.law.name for law in laws), values, coupling=coupling)
