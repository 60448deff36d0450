"""Numbers and tables as Markdown, and the pages of the documentation that studies fill with them."""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterable, Sequence
from pathlib import Path

from benchmarks.shared.command import output_file
from friction_estimator.io.documents import write_atomically

DOCS = Path(__file__).resolve().parents[2] / "docs"
NOTHING = "–"


class Page:
    """A page with places for tables; the text around them belongs to the page.

    Each place lies between the lines ``<!-- begin of the NAME -->`` and ``<!-- end of the NAME -->``. A page that does
    not exist yet is written with the tables alone.

    Parameters
    ----------
    path : Markdown file in an existing folder
    names : of the places

    Raises
    ------
    argparse.ArgumentTypeError
        When the folder or the lines of a place are missing.
    """

    def __init__(self, path: str | Path, names: Sequence[str]) -> None:
        self.path = output_file(str(path))
        if not self.path.exists():
            write_atomically(self.path, "\n".join(f"{_begin(name)}\n{_end(name)}\n" for name in names))
        text = self.path.read_text(encoding="utf-8")
        for name in names:
            if not 0 <= text.find(_begin(name)) < text.find(_end(name)):
                raise argparse.ArgumentTypeError(
                    f"{path} has no lines {_begin(name)!r} and {_end(name)!r} in this order"
                )

    @property
    def images(self) -> Path:
        """Folder of the figures, next to the page."""
        folder = self.path.parent / "images"
        folder.mkdir(exist_ok=True)
        return folder

    def lines(self, name: str) -> list[str]:
        """Lines of a place."""
        _, _, rest = self.path.read_text(encoding="utf-8").partition(_begin(name))
        return rest.partition(_end(name))[0].strip("\n").split("\n")

    def fill(self, name: str, lines: Iterable[str]) -> None:
        """Write these lines into a place, in place of those that are there."""
        text = self.path.read_text(encoding="utf-8")
        before, _, rest = text.partition(_begin(name))
        _, _, after = rest.partition(_end(name))
        content = "\n".join(lines).strip("\n")
        write_atomically(self.path, f"{before}{_begin(name)}\n\n{content}\n\n{_end(name)}{after}")


def add_page(parser: argparse.ArgumentParser, default: Path, *names: str, optional: bool = False) -> None:
    """Add the option ``--output``, a page with these places; ``optional``: without it, none is filled."""

    def page(text: str) -> Page:
        return Page(text, names)

    about, given = "page whose tables are filled", None if optional else str(default)
    if optional:
        about = f"page to fill, as {default.relative_to(DOCS.parent)}; none: print only"
    parser.add_argument("-o", "--output", type=page, default=given, metavar="PAGE", help=about)


def number(value: float, digits: int = 2) -> str:
    """Number with fixed decimals and without a minus in front of a zero; a dash for NaN."""
    if not math.isfinite(value):
        return NOTHING
    return f"{round(value, digits) + 0.0:.{digits}f}"


def row_of(values: Iterable[float], digits: int = 2) -> str:
    """Several numbers in one cell."""
    return " ".join(number(float(value), digits) for value in values)


def row(cells: Iterable[object]) -> str:
    """One line of a table."""
    return f"| {' | '.join(map(str, cells))} |"


def header(heading: Sequence[str]) -> str:
    """The first two lines of a table."""
    return f"{row(heading)}\n|{'---|' * len(heading)}"


def table(heading: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """Lines of a table, and an empty line after it."""
    return [*header(heading).split("\n"), *map(row, rows), ""]


def _begin(name: str) -> str:
    return f"<!-- begin of the {name} -->"


def _end(name: str) -> str:
    return f"<!-- end of the {name} -->"
