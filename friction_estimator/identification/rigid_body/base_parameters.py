"""Parameters that a model can tell apart: base parameters by QR, and what each of them groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from friction_estimator.identification.rigid_body.parameter_names import in_words
from friction_estimator.types import FloatArray, IntArray

RANK_TOLERANCE = 3e-5
"""A column nearer than this, relative to its norm, to the span of the kept ones cannot be told apart: the angles
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
    W : (r, s) observation matrix, of random motions (what the model can tell apart) or of data (what the data can)
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
