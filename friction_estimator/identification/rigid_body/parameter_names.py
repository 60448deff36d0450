"""Names of identified numbers that are sums of parameters: short, and still what they are the sum of."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np

from friction_estimator.types import FloatArray

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
