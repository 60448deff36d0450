"""Names of joints and parameters as C identifiers."""

from __future__ import annotations

import re
from collections.abc import Sequence

_KEYWORDS = frozenset(
    "auto break case char const continue default do double else enum extern float for goto if inline int long register "
    "restrict return short signed sizeof static struct switch typedef union unsigned void volatile while bool class "
    "delete explicit export false friend mutable namespace new operator private protected public template this throw "
    "true try typename using virtual".split()
)


def identifiers(names: Sequence[str]) -> list[str]:
    """C identifiers, all different, as close to the names as C allows."""
    taken: dict[str, None] = {}
    for name in names:
        plain = re.sub(r"\W", "_", name, flags=re.ASCII) or "_"
        plain = f"_{plain}" if plain[0].isdigit() else f"{plain}_" if plain in _KEYWORDS else plain
        unique, count = plain, 2
        while unique in taken:
            unique, count = f"{plain}_{count}", count + 1
        taken[unique] = None
    return list(taken)
