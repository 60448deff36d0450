"""Columns of the observation matrix that hold the rigid body: base parameters by QR, drive inertia, known bodies."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from friction_estimator.config.robot import Coupling
from friction_estimator.identification.fixed_base_model import STANDARD_COUNT, FixedBaseModel, blocks
from friction_estimator.identification.joint_log import Payload
from friction_estimator.identification.linear_problem import Prior
from friction_estimator.identification.recording.motion import Motion
from friction_estimator.types import FloatArray, IntArray

_LEAST_COEFFICIENT = 1e-4
"""Coefficients below this, in units of the parameters, are not worth a word."""
_SAME_COEFFICIENT = 5e-4
"""Relative difference of coefficients that are one: names have four digits."""
_ROUNDED_DIGITS = 7
"""Rounded to these first, so that equal coefficients read equal."""
_OF_A_LINK = re.compile(r"(\S+) (\S+)")
"""A standard parameter, ``Izz knee``; sums have more than two words, other parameters one."""


def in_words(names: Sequence[str], row: FloatArray, behind: Mapping[str, frozenset[str]] = MappingProxyType({})) -> str:
    """Name of a sum of parameters, led by the first one, e.g. ``Izz shoulder + 0.05 m from elbow on``.

    Parameters of one kind with one factor are one term; ``m from elbow on`` is that of the elbow's link and of all
    links that it carries.

    Parameters
    ----------
    names, row : (s) parameters, some of which may be sums themselves, and their factors
    behind : of every link, itself and all links that it carries
    """
    terms: list[tuple[float, str, list[str]]] = []  # factor, what it multiplies, and the links of which this is the sum
    lead = int(np.argmax(row != 0.0)) if row.any() else 0
    for column in (lead, *(int(k) for k in np.flatnonzero(np.abs(row) > _LEAST_COEFFICIENT) if k != lead)):
        factor, found = float(row[column]), _OF_A_LINK.fullmatch(names[column])
        what, links = (names[column], []) if found is None else (found[1], [found[2]])
        alike = (one for one in terms if links and one[2] and one[1] == what)
        same = next((one for one in alike if np.isclose(one[0], factor, rtol=_SAME_COEFFICIENT, atol=0.0)), None)
        if same is None:
            terms.append((factor, what, links))
        else:
            same[2].extend(links)
    words = ""
    for factor, what, links in terms:
        if words:
            size = "" if np.isclose(abs(factor), 1.0) else f"{round(abs(factor), _ROUNDED_DIGITS):.4g} "
            words += f" {'+' if factor > 0.0 else '-'} {size}"
        if not links:
            words += f"({what})" if " " in what and factor != 1.0 else what
        elif len(links) == 1:
            words += f"{what} {links[0]}"
        else:
            first = next((link for link in links if behind.get(link) == frozenset(links)), None)
            words += f"{what} ({' + '.join(links)})" if first is None else f"{what} from {first} on"
    return words


_RANK_TOLERANCE = 3e-5
"""A column nearer than this, relative to its norm, to the span of the kept ones is dependent: the angles
of a URDF are rounded, often to four digits, which tilts axes that are parallel."""
EMPTY = 3e-5
"""A column whose norm, relative to the largest one, is below this is zero: rounded angles again."""
_ROUNDING = 1e-7


@dataclass(frozen=True, slots=True)
class BaseParameters:
    """Independent columns of a matrix, and the others as combinations of these (Gautier 1991)."""

    names: tuple[str, ...]  # (b) e.g. `Izz shoulder + 0.05 m elbow`: what the identified number is the sum of
    kept: IntArray  # (b) columns of the full matrix that stay
    grouping: FloatArray  # (b, s) base = grouping @ standard; `W = W[:, kept] @ grouping`


def base_parameters(
    names: Sequence[str],
    W: FloatArray,
    tolerance: float = _RANK_TOLERANCE,
    smallest: float = EMPTY,
    behind: Mapping[str, frozenset[str]] = MappingProxyType({}),
) -> BaseParameters:
    """Keep every column that does not lie in the span of those before it (Hamon et al. 2010, eqs. 9-10).

    The order decides who is kept: with links from base to tip, the outer links' masses are grouped into inner links.

    Parameters
    ----------
    names : (s) of the columns
    W : (r, s) observation matrix, of random motions (what the model can identify) or of data (what the data can)
    tolerance : relative distance to the span of the kept columns below which a column is dependent
    smallest : norm, relative to the largest one, below which a column is zero
    behind : of every link, itself and all links that it carries, for short names
    """
    triangle = np.asarray(np.linalg.qr(W, mode="r"))  # the same inner products in few rows
    norms = np.linalg.norm(triangle, axis=0)
    scale = np.where(norms > smallest * norms.max(initial=0.0), norms, np.inf)
    kept = _independent(triangle / scale, tolerance) if norms.any() else []
    grouping = np.zeros((len(kept), W.shape[1]))
    if kept:
        grouping = np.linalg.lstsq(triangle[:, kept] / scale[kept], triangle, rcond=None)[0] / scale[kept, None]
    grouping[np.abs(grouping) < _ROUNDING] = 0.0
    grouping[:, kept] = np.eye(len(kept))
    words = tuple(in_words(names, row, behind) for row in grouping)
    return BaseParameters(words, np.array(kept, dtype=np.intp), grouping)


def _independent(triangle: FloatArray, tolerance: float) -> list[int]:
    """Columns in order that do not lie in the span of those kept before."""
    basis = np.zeros((triangle.shape[0], 0))
    kept = []
    for column in range(triangle.shape[1]):
        rest = triangle[:, column]
        for _ in range(2):  # once more, or rounding of the first projection stays
            rest = rest - basis @ (basis.T @ rest)
        distance = np.linalg.norm(rest)
        if distance > tolerance:
            kept.append(column)
            basis = np.column_stack((basis, rest / distance))
    return kept


def drive_inertia_columns(
    joint_names: Sequence[str], acceleration: FloatArray, coupling: Coupling | None = None
) -> tuple[tuple[str, ...], FloatArray]:
    """Names and columns (N, n, m) of the inertia of the drives, Ia of Hamon et al. 2010, eq. 9, seen at the joint.

    Parameters
    ----------
    acceleration : (N, n) [rad/s^2]
    coupling : drives turn with the motors' accelerations, and act on the joints through the coupling
    """
    directions = np.eye(len(joint_names))
    names = list(joint_names)
    if coupling is not None:
        places = [list(joint_names).index(name) for name in coupling.joint_names]
        directions[np.ix_(places, places)] = np.linalg.inv(coupling.matrix)
        for place, motor in zip(places, coupling.motor_names, strict=True):
            names[place] = motor
    columns = np.einsum("mi,mj,ti->tjm", directions, directions, acceleration)
    return tuple(f"Ia {name}" for name in names), np.asarray(columns)


_NARROWEST_LINK = 0.01
"""Of a link: no body is smaller [m]."""
_RANDOM_SAMPLES = 200
_DRIVE_UNIT = "kg m^2"


@dataclass(frozen=True, slots=True)
class RigidBodyOptions:
    """Which parameters of the rigid body are unknown."""

    known_inertia: bool = False  # the URDF's inertial parameters are trusted; nothing of the links is estimated
    drive_inertia: bool = True  # the inertia of every drive is estimated
    # the mass of the payloads is estimated too, as a multiple of the given mass (M_ae / M_aw of Hamon et al.
    # 2010, eq. 35); otherwise they are known
    payload_scale: bool = False


class RigidBody:
    """Torque of everything that is not friction, ``known + columns @ chi`` (Hamon et al. 2010, eqs. 10, 34, 35).

    Parameters
    ----------
    model : of the recorded joints
    options : what is unknown
    coupling : of the drives, None where every joint has its own
    payloads : of all motions; what is not known of them is estimated

    Attributes
    ----------
    base : which standard parameters (links, then drives) can be identified, and how
    standard_names : (s) links, unless they are known, then drives
    names, units : (b) of the columns
    link_reference : (10 l,) standard parameters of the unknown links in the URDF
    reference : (b,) values by the URDF, NaN where drives are in it: a URDF lacks their inertia
    urdf_values : (b,) values by the URDF, with drives that have no inertia
    """

    def __init__(
        self,
        model: FixedBaseModel,
        options: RigidBodyOptions,
        coupling: Coupling | None = None,
        payloads: Sequence[Payload] = (),
    ) -> None:
        self._model, self._options, self._coupling = model, options, coupling
        n, known = len(model.joint_names), options.known_inertia
        self.link_reference: FloatArray = np.zeros(0) if known else model.urdf_parameters
        drives = drive_inertia_columns(model.joint_names, np.zeros((1, n)), coupling)[0] * options.drive_inertia
        self.standard_names = (*(() if known else model.standard_names), *drives)
        units = (*(() if known else model.standard_units), *[_DRIVE_UNIT] * len(drives))
        # random motions: what this robot can show at all, whatever the data
        q, v, a = np.random.default_rng(0).uniform(-np.pi, np.pi, (3, _RANDOM_SAMPLES, n))
        W = self._standard(model.regressor(q, v, a), a, np.arange(len(units))).reshape(_RANDOM_SAMPLES * n, len(units))
        self.base = base_parameters(self.standard_names, W, behind=model.behind)
        self.names: tuple[str, ...] = self.base.names
        self.units: tuple[str, ...] = tuple(units[k] for k in self.base.kept)
        standard = np.append(self.link_reference, np.full(len(drives), np.nan))
        used = [row != 0.0 for row in self.base.grouping]  # NaN only where a parameter holds one that is not known
        pairs = zip(self.base.grouping, used, strict=True)
        self.reference: FloatArray = np.array([row[own] @ standard[own] for row, own in pairs])
        self.urdf_values: FloatArray = self.base.grouping @ np.nan_to_num(standard)
        parts = (model.unknown_of_payload(payload).items() for payload in payloads)
        unknown = {name: unit for part in parts for name, (unit, _) in part}
        self.names += (*unknown, *("payload scale",) * options.payload_scale)
        self.units += (
            *("kg m^2" if name.startswith("I") else "kg m" for name in unknown),
            *("",) * options.payload_scale,
        )
        beyond = [np.nan] * len(unknown) + [1.0] * options.payload_scale
        self.reference = np.append(self.reference, beyond)
        self.urdf_values = np.append(self.urdf_values, np.nan_to_num(beyond))

    def columns(self, motion: Motion) -> tuple[FloatArray, FloatArray]:
        """Columns (N, n, b) and known torque (N, n) [N m] of a motion."""
        q, v, a = motion.position, motion.velocity, motion.acceleration
        model, kept, scales = self._model, self.base.kept, self._options.payload_scale
        unknown, body = dict[str, tuple[str, FloatArray]](), np.zeros(0)
        if motion.payload is not None:
            unknown, body = model.unknown_of_payload(motion.payload), model.payload_parameters(motion.payload)
        own = [self.names.index(name) for name in unknown]
        columns, known = np.zeros((*q.shape, len(self.names))), np.zeros_like(q)
        for rows in blocks(len(q)):
            regressor = model.regressor(q[rows], v[rows], a[rows])
            columns[rows, :, : kept.size] = self._standard(regressor, a[rows], kept)
            if self._options.known_inertia:
                known[rows] = regressor @ model.urdf_parameters
            if unknown:
                columns[rows][:, :, own] = regressor @ np.column_stack([direction for _, direction in unknown.values()])
            if body.size and scales:
                columns[rows, :, -1] = regressor @ body
            elif body.size:
                known[rows] += regressor @ body
        return columns, known

    def standard_inertia(self, values: FloatArray) -> dict[str, float]:
        """Standard parameters by name that give the same torque as these values (b,) of the columns.

        Parameters of the payloads are not among them.
        """
        known = self._model.urdf_parameters if self._options.known_inertia else np.zeros(0)
        inertia = {name: float(value) for name, value in zip(self._model.standard_names, known, strict=False) if value}
        names = self.standard_names
        for column, value in zip(self.base.kept.tolist(), values.tolist(), strict=False):
            if value != 0.0:
                inertia[names[column]] = value
        return inertia

    def payload_values(self, values: FloatArray) -> dict[str, float]:
        """Identified parameters of the payloads by name, from these values (b,) of the columns."""
        beyond = slice(len(self.base.names), len(self.names) - self._options.payload_scale)
        return dict(zip(self.names[beyond], values[beyond].tolist(), strict=True))

    def drive_inertia(
        self, places: IntArray, values: FloatArray, covariance: FloatArray, sigma: float, drive: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Inertia (n,) of the drives and its standard deviation, given the links of the URDF [kg m^2].

        The data show most drives together with the links that they move; the URDF decides which part is that of the
        links.

        Parameters
        ----------
        places : (k,) columns that were identified, their values (k,) and covariance (k, k)
        sigma, drive : as of :meth:`prior`
        """
        G = self.base.grouping[places]
        links = _link_spread(self.link_reference, sigma)
        mean = np.append(self.link_reference, np.zeros(drive.size))
        variance = np.append(np.where(np.isfinite(links), links, 0.0), np.where(np.isfinite(drive), drive, 0.0)) ** 2
        K = np.linalg.lstsq(G * variance @ G.T, G * variance, rcond=_ROUNDING)[0].T
        inertia = (mean + K @ (values - G @ mean))[-drive.size :]
        spread = np.diag(variance) - K @ (G * variance) + K @ covariance @ K.T
        return inertia, np.sqrt(np.maximum(np.diagonal(spread)[-drive.size :], 0.0))

    def prior(self, sigma: float, drive: FloatArray) -> Prior:
        """Prior of the columns (b) by the URDF.

        Every link is as uncertain as if its mass, and the distances and widths of it, had the relative standard
        deviation ``sigma``. Links without a mass in the URDF, and payload scales, are not known at all.

        Parameters
        ----------
        sigma : relative standard deviation of the inertial parameters
        drive : (n,) standard deviation of the drives' inertia about zero [kg m^2]
        """
        count = len(self.base.names)
        mean, spread = self.link_reference, _link_spread(self.link_reference, sigma)
        if self._options.drive_inertia:
            mean, spread = np.append(mean, np.zeros(drive.size)), np.append(spread, drive)
        known = np.isfinite(spread)
        variance = (self.base.grouping[:, known] * spread[known] ** 2) @ self.base.grouping[:, known].T
        free = (self.base.grouping[:, ~known] != 0.0).any(axis=1) | ~(np.diagonal(variance) > 0.0)
        scale = np.sqrt(np.where(free, 1.0, np.diagonal(variance)))
        precision = np.zeros((len(self.names), len(self.names)))
        places = np.flatnonzero(~free)
        inner = (variance / np.outer(scale, scale))[np.ix_(places, places)]
        inverse = np.linalg.pinv(inner, rcond=_ROUNDING, hermitian=True)
        precision[np.ix_(places, places)] = inverse / np.outer(scale[places], scale[places])
        whole = np.zeros(len(self.names))
        whole[:count] = self.base.grouping @ mean
        return Prior(whole, precision)

    def _standard(self, regressor: FloatArray, acceleration: FloatArray, kept: IntArray) -> FloatArray:
        """Columns (N, n, k) of these standard parameters, in rising order."""
        count = 0 if self._options.known_inertia else regressor.shape[2]
        drives = drive_inertia_columns(self._model.joint_names, acceleration, self._coupling)[1]
        return np.concatenate((regressor[:, :, kept[kept < count]], drives[:, :, kept[kept >= count] - count]), axis=2)


def _link_spread(links: FloatArray, sigma: float) -> FloatArray:
    """Standard deviations (10 l,) of standard parameters, infinite for links without a mass."""
    dynamic = links.reshape(-1, STANDARD_COUNT)
    mass = np.where(dynamic[:, 0] > 0.0, dynamic[:, 0], np.inf)
    trace = dynamic[:, 4] + dynamic[:, 6] + dynamic[:, 9]
    with np.errstate(invalid="ignore"):
        width = np.sqrt(np.maximum(trace / (2.0 * mass), _NARROWEST_LINK**2))  # RMS distance of the mass from the joint
    powers = np.array([0] + [1] * 3 + [2] * 6)
    return np.asarray(sigma * mass[:, None] * width[:, None] ** powers).ravel()
