"""Friction laws of all joints of a robot: their regressors, and the friction where the velocity is uncertain."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

import numpy as np
from numpy.polynomial.hermite_e import hermegauss

from friction_estimator.errors import ConfigError, choices
from friction_estimator.kernels.compiler import entry_point, kernel
from friction_estimator.kernels.records import buffered, record
from friction_estimator.laws.law import law_names, make_law
from friction_estimator.laws.linear import (
    ADDED_TERMS,
    PRESLIDING,
    Shape,
    Term,
    fill_regressor,
    linear_law_names,
    make_linear_law,
    presliding_of_load,
    term_table,
)
from friction_estimator.types import BoolArray, FloatArray, IndexTensor, IntArray, Matrix, Vector

_QUADRATURE_NODES, _QUADRATURE_WEIGHTS = hermegauss(7)
_QUADRATURE_WEIGHTS /= _QUADRATURE_WEIGHTS.sum()
"""Gauss-Hermite quadrature over a standard normal variable."""
_FEW_NODES, _FEW_WEIGHTS = hermegauss(3)
_FEW_WEIGHTS /= _FEW_WEIGHTS.sum()
"""The same quadrature with fewer nodes."""
_SMOOTH_SHARE = 0.1
"""Where the standard deviation of the velocity is below this part of the finest scale of the law, three nodes have an
error below 1e-6 of the friction."""


@record
class LawTable(NamedTuple):
    """Terms of the friction laws of n joints."""

    # (n, p, 5), (n, p) terms
    codes: IndexTensor
    scales: Matrix
    finest: Vector  # (n,) smallest scale of the velocity over which the friction changes, zero where it jumps [rad/s]


@entry_point
def _joints_regressor(laws: LawTable, velocity: Matrix, load: Matrix) -> FloatArray:
    """Regressors (r, n, p) of all joints at velocities and loads (r, n)."""
    rows, n = velocity.shape
    phi, none = np.empty((rows, n, laws.scales.shape[1])), np.empty(0)
    for row in range(rows):
        for joint in range(n):
            fill_regressor(
                phi[row, joint], laws.codes[joint], laws.scales[joint], velocity[row, joint], load[row, joint],
                none, 1.0, 0.0, none,
            )  # fmt: skip
    return phi


@entry_point
def regressor_of_motors(
    laws: LawTable,
    matrix: Matrix,
    to_joints: Matrix,
    velocity: Vector,
    effort: Vector,
    regressor: Matrix,
) -> None:
    """Write the regressor of the motors' friction laws at velocities and torques of the joints.

    Parameters
    ----------
    laws : terms of the laws of n motors
    matrix, to_joints : (n, n) maps between motors and joints, as of :class:`MotorTable`
    velocity, effort : (n,) joint velocities [rad/s] and motor torques reflected to the joints [N m]
    regressor : (n, p) output, a row per motor
    """
    n, none = velocity.size, np.empty(0)
    for motor in range(n):
        speed, load = 0.0, 0.0
        for joint in range(n):
            if to_joints[joint, motor] != 0.0:
                speed += velocity[joint] * to_joints[joint, motor]
            if matrix[joint, motor] != 0.0:
                load += effort[joint] * matrix[joint, motor]
        fill_regressor(regressor[motor], laws.codes[motor], laws.scales[motor], speed, load, none, 1.0, 0.0, none)


@kernel
def advance_strain(strain: FloatArray, unknown: FloatArray, moved: float) -> None:
    """Advance the Dahl strains (s,) of one motor that has moved by ``moved`` [rad], in place.

    ``dz = (dq - |dq| z) / s`` (Dahl 1968), implicit in z: stable for any step. ``unknown`` (s,) is what is left of
    the error of z at the start, which is unknown.
    """
    for k in range(strain.size):
        part = moved / PRESLIDING[k]
        strain[k] = (strain[k] + part) / (1.0 + abs(part))
        unknown[k] /= 1.0 + abs(part)


@entry_point
def dahl_strain(strain: Vector, moved: Matrix, distance: float) -> FloatArray:
    """Dahl strains z (N, n) of presliding after each of N steps, from strains (n,), exact for steps in one direction.

    ``dz = (dq - |dq| z) / s`` (Dahl 1968); the bristles of the LuGre model (Canudas de Wit et al. 1995, eq. 2), as a
    fraction of the presliding distance.

    Parameters
    ----------
    strain : (n,) before the first step
    moved : (N, n) distances of the steps [rad]
    distance : presliding distance s [rad]
    """
    strains = np.empty(moved.shape)
    for joint in range(strain.size):
        z = strain[joint]
        for k in range(moved.shape[0]):
            direction = np.sign(moved[k, joint])
            z = direction + (z - direction) * np.exp(-abs(moved[k, joint]) / distance)
            strains[k, joint] = z
    return strains


@record
class MeanFriction(NamedTuple):
    """Friction of n joints over uncertain velocities: mean regressor (n, p), mean (n,) [N m], variance (n,)."""

    regressor: Matrix
    torque: Vector
    variance: Vector

    @staticmethod
    def empty(joints: int, parameters: int) -> MeanFriction:
        """Arrays for n joints and p parameters, which :func:`expected_friction` fills."""
        return MeanFriction(np.empty((joints, parameters)), *np.empty((2, joints)))


@kernel
def expected_friction(
    laws: LawTable,
    parameters: FloatArray,
    velocity: FloatArray,
    load: FloatArray,
    velocity_std: FloatArray,
    strain: FloatArray,
    wave: FloatArray,
    out: MeanFriction,
) -> None:
    """Write mean and variance of the friction of n joints when the true velocities are Gaussian.

    Gauss-Hermite quadrature with seven nodes, exact for polynomials up to degree thirteen; with three, up to degree
    five, where the velocity is well known. Where the velocity is more uncertain than the law is smooth, the law is
    nearly a jump, and the quadrature has an error: of ``tanh(dq/s)`` at most 0.003 when the standard deviation is s,
    0.05 when it is 2 s, and 0.11 when it is 3 s; of ``sgn(dq)`` up to 0.46, close to zero.

    Parameters
    ----------
    parameters : (n, p)
    velocity, velocity_std, load : (n,) mean and standard deviation [rad/s], [N m]
    strain : (n, s) Dahl strains of the presliding terms; (n, 0): the joints slide on
    wave : (n, 2) sine and cosine of the ripple; (n, 0): the mean over all positions
    """
    n, p = laws.scales.shape
    phi, torque, codes, scales = np.empty(p), np.empty(_QUADRATURE_NODES.size), laws.codes, laws.scales
    for joint in range(n):
        few = velocity_std[joint] <= _SMOOTH_SHARE * max(laws.finest[joint], abs(velocity[joint]))
        nodes, weights = (_FEW_NODES, _FEW_WEIGHTS) if few else (_QUADRATURE_NODES, _QUADRATURE_WEIGHTS)
        out.regressor[joint], mean, variance = 0.0, 0.0, 0.0
        sliding, held = presliding_of_load(codes[joint], parameters[joint], strain[joint])
        for k in range(nodes.size):
            at = velocity[joint] + nodes[k] * velocity_std[joint]
            fill_regressor(phi, codes[joint], scales[joint], at, load[joint], strain[joint], sliding, held, wave[joint])
            torque[k] = 0.0
            for j in range(p):
                torque[k] += phi[j] * parameters[joint, j]
                out.regressor[joint, j] += weights[k] * phi[j]
            mean += weights[k] * torque[k]
        for k in range(nodes.size):
            variance += weights[k] * (torque[k] - mean) ** 2
        out.torque[joint], out.variance[joint] = mean, variance


class JointLaws:
    """One linear friction law per joint.

    ``n`` joints share arrays of ``p`` columns, as many as the law with most parameters has. Where a law has fewer, the
    remaining columns of every regressor are zero.

    Parameters
    ----------
    names : (n) name of the law of every joint
    added : kinds of :data:`~friction_estimator.laws.linear.ADDED_TERMS`; their columns follow those of the laws, in
        the order of that table

    Attributes
    ----------
    law_names : (n) as given
    table_buffer, table : terms for the kernels, and the buffer that has them
    parameter_names : (n) names of the parameters of every joint
    parameter_count : p
    nonnegative : (n, p) True where it cannot be negative
    prior_std : (n, p) its standard deviation before any data, zero where there is no parameter
    coulomb_weights : (n, p) the plateau without load is ``(coulomb_weights * parameters).sum(axis=-1)``
    presliding : (n, p) one for torques of the presliding terms, else zero
    added : columns of the terms that are not the laws' own, by kind, for every kind; empty without its terms

    Raises
    ------
    ConfigError
        When a law is unknown or not linear.
    """

    def __init__(self, names: Sequence[str], added: Collection[str] = ()) -> None:
        self.law_names = tuple(names)
        laws = {name: make_linear_law(name) for name in dict.fromkeys(names)}
        self.parameter_names = tuple(laws[name].parameter_names for name in names)
        own = max(map(len, self.parameter_names))
        more: tuple[Term, ...] = ()
        self.added: dict[str, slice] = {}
        for kind, terms in ADDED_TERMS.items():
            start, more = own + len(more), more + terms * (kind in added)
            self.added[kind] = slice(start, own + len(more))
        self.parameter_count = own + len(more)
        shape = len(names), self.parameter_count
        self.nonnegative: BoolArray = np.zeros(shape, dtype=bool)
        self.prior_std, self.coulomb_weights, self.presliding = np.zeros((3, *shape))
        empty = LawTable(np.empty((*shape, 5), dtype=np.int64), np.empty(shape), np.empty(len(names)))
        self.table_buffer, self.table = buffered(empty)
        codes, scales, finest = self.table
        for row, name in enumerate(names):
            law, columns = laws[name], slice(len(laws[name].parameter_names))
            codes[row], scales[row] = term_table((*law.terms, *[None] * (own - len(law.terms)), *more))
            finest[row] = min(term.finest for term in (*law.terms, *more))
            self.nonnegative[row, columns] = law.nonnegative
            self.prior_std[row, columns] = law.prior_std
            self.coulomb_weights[row, columns] = law.coulomb(np.eye(len(law.parameter_names)))
        self.presliding[:, own:] = [term.shape == Shape.STRAIN for term in more]
        self.nonnegative[:, own:] = [term.nonnegative for term in more]
        self.prior_std[:, own:] = [term.prior_std for term in more]

    def common_columns(self, other: JointLaws) -> tuple[IntArray, IntArray]:
        """Columns (q,), in this object and in ``other``, of the parameters of laws that differ in added terms only."""
        mine, theirs = self.added, other.added
        own = slice(0, min(columns.start for columns in mine.values()))
        both = [kind for kind in mine if mine[kind].start < mine[kind].stop and theirs[kind].start < theirs[kind].stop]
        return np.r_[(own, *(mine[kind] for kind in both))], np.r_[(own, *(theirs[kind] for kind in both))]

    def regressor(self, velocity: FloatArray, load: FloatArray) -> FloatArray:
        """Regressor (..., n, p) at velocities (..., n) [rad/s] and loads (..., n) [N m], which may broadcast."""
        rows, loads = np.ascontiguousarray(velocity, dtype=float), np.empty(velocity.shape)
        loads[...] = load
        shape = -1, len(self.law_names)
        phi = _joints_regressor(self.table_buffer, rows.reshape(shape), loads.reshape(shape))
        return phi.reshape(*velocity.shape, self.parameter_count)

    def torque(self, parameters: FloatArray, velocity: FloatArray, load: FloatArray) -> FloatArray:
        """Friction torque (..., n) [N m] for parameters (n, p)."""
        return np.asarray((self.regressor(velocity, load) * parameters).sum(axis=-1))

    def describe(self, joint_names: Sequence[str]) -> str:
        """The laws in words, e.g. ``three_slope`` or ``coulomb_viscous; tanh_load: l_knee, r_knee``."""
        joints: dict[str, list[str]] = {}
        for joint, law in zip(joint_names, self.law_names, strict=True):
            joints.setdefault(law, []).append(joint)
        most = max(joints, key=lambda name: len(joints[name]))
        others = (f"{name}: {', '.join(members)}" for name, members in joints.items() if name != most)
        return "; ".join((most, *others))


AUTOMATIC, START_LAW = "auto", "coulomb_viscous"
"""Name in place of a law that is chosen from recordings, and the law that the choice begins with."""


def joints_without_own_law(exceptions: Sequence[str], joint_names: Sequence[str]) -> list[int]:
    """Indices of the joints whose law no entry ``joint=law`` names."""
    patterns = [entry.partition("=")[0].strip() for entry in exceptions]
    return [k for k, name in enumerate(joint_names) if not any(fnmatchcase(name, pattern) for pattern in patterns)]


def laws_of_joints(
    law: str, exceptions: Sequence[str], joint_names: Sequence[str], linear: bool = True
) -> tuple[str, ...]:
    """Name of the law of every joint.

    Parameters
    ----------
    law : the law of all joints, ``identifier.law``; :data:`AUTOMATIC` counts as :data:`START_LAW`
    exceptions : ``identifier.joint_laws``: entries ``joint=law``, the joint a name or a shell pattern (``*_knee``);
        where several match, the last one holds
    joint_names : (n) joints, or motors where motors move several joints together
    linear : whether all laws must be linear in their parameters; a recursive filter needs that

    Raises
    ------
    ConfigError
        When an entry is not of that form, or matches no joint, or a law is unknown or not linear.
    """
    allowed, kind = (linear_law_names(), "no linear law") if linear else (law_names(), "no friction law")
    law = START_LAW if law == AUTOMATIC else law
    names = [law] * len(joint_names)
    (make_linear_law if linear else make_law)(law)
    for entry in exceptions:
        pattern, separator, name = (part.strip() for part in entry.partition("="))
        if not separator or name not in allowed:
            wrong = f"{name!r} is {kind}" if separator else "it must be written joint=law"
            raise ConfigError(f"joint_laws: {entry!r}: {wrong}; the laws that can be identified are {choices(allowed)}")
        rows = [k for k, joint in enumerate(joint_names) if fnmatchcase(joint, pattern)]
        if not rows:
            raise ConfigError(f"joint_laws: {entry!r} matches no joint; the joints are {choices(joint_names)}")
        for row in rows:
            names[row] = name
    return tuple(names)
