"""Base parameters: the sums of inertial parameters that a motion can identify, by QR, and their names."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np

from friction_estimator.types import FloatArray, IntArray

_CLEAN = 1e-4
"""Coefficients below this, in units of the parameters, are not worth a word."""
_SAME = 5e-4
"""Relative difference of coefficients that are one: names have four digits."""
_DIGITS = 7
"""Rounded to these first, so that equal coefficients read equal."""
_OF_A_LINK = re.compile(r"(\S+) (\S+)")
"""A standard parameter, ``Izz knee``; sums have more than two words, other parameters one."""


@dataclass(slots=True)
class _Term:
    """A factor, what it multiplies, and the links of which this is the sum."""

    factor: float
    what: str
    links: list[str] = field(default_factory=list)


def in_words(names: Sequence[str], row: FloatArray, behind: Mapping[str, frozenset[str]] = MappingProxyType({})) -> str:
    """Name of a sum, led by its first parameter, e.g. ``Izz shoulder + 0.05 m from elbow on``.

    Parameters of one kind with one factor are one term; ``m from elbow on`` is that of the elbow's link and of all
    links that it carries.

    Parameters
    ----------
    names, row : (s) parameters, some of which may be sums themselves, and their factors
    behind : of every link, itself and all links that it carries
    """
    terms: list[_Term] = []
    lead = int(np.argmax(row != 0.0)) if row.any() else 0
    for column in (lead, *(int(k) for k in np.flatnonzero(np.abs(row) > _CLEAN) if k != lead)):
        _add(terms, names[column], float(row[column]))
    words = _words(terms[0], behind)
    for term in terms[1:]:
        words += f" {'+' if term.factor > 0.0 else '-'} {_times(term)}{_words(term, behind)}"
    return words


def _add(terms: list[_Term], name: str, factor: float) -> None:
    """Another parameter: in the term that it belongs to, or as a new one."""
    found = _OF_A_LINK.fullmatch(name)
    if found is None:
        terms.append(_Term(factor, name))
        return
    for term in terms:
        if term.links and term.what == found[1] and np.isclose(term.factor, factor, rtol=_SAME, atol=0.0):
            term.links.append(found[2])
            return
    terms.append(_Term(factor, found[1], [found[2]]))


def _times(term: _Term) -> str:
    return "" if np.isclose(abs(term.factor), 1.0) else f"{round(abs(term.factor), _DIGITS):.4g} "


def _words(term: _Term, behind: Mapping[str, frozenset[str]]) -> str:
    if not term.links:
        return f"({term.what})" if " " in term.what and term.factor != 1.0 else term.what
    if len(term.links) == 1:
        return f"{term.what} {term.links[0]}"
    for link in term.links:
        if behind.get(link) == frozenset(term.links):
            return f"{term.what} from {link} on"
    return f"{term.what} ({' + '.join(term.links)})"


RANK_TOLERANCE = 3e-5
"""A column nearer than this, relative to its norm, to the span of the kept ones is dependent: the angles
of a URDF are rounded, often to four digits, which tilts axes that are parallel."""
EMPTY = 3e-5
"""A column whose norm, relative to the largest one, is below this is zero: rounded angles again."""
_ROUNDING = 1e-7


@dataclass(frozen=True, slots=True)
class BaseParameters:
    """Independent columns of a matrix and how the others lie in their span (Gautier 1991).

    Attributes
    ----------
    names : (b) e.g. ``Izz shoulder + 0.05 m elbow``: what the identified number is the sum of
    kept : (b) columns of the full matrix that stay
    grouping : (b, s) base = grouping @ standard; ``W = W[:, kept] @ grouping``
    """

    names: tuple[str, ...]
    kept: IntArray
    grouping: FloatArray


def base_parameters(
    names: Sequence[str],
    W: FloatArray,
    tolerance: float = RANK_TOLERANCE,
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
