"""Does the tutorial show what its commands print? They run in the order of the page, and their output goes into it.

    python -m benchmarks.tutorial            fills docs/tutorial.md
    python -m benchmarks.tutorial --check    compares its numbers with those that the commands print now

Takes two minutes.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.shared.command import command, make_parser
from benchmarks.shared.pages import DOCS, add_page

ROOT = DOCS.parent
TUTORIAL = DOCS / "tutorial.md"
OUTPUTS = {  # place in the page: command whose output it has, and the lines of it that are shown
    "bag": ("simulate -o walk", r"walk: .*"),
    "parameters": ("identify smoothed", r" +(value ± 2|parameter|l_hip_yaw/|l_hip_roll/).*"),
    "errors of the laws": ("identify smoothed", r" +(held-out(?! +above)|segments|predict|joint|l_\w+) +[^/]*"),
    "validation": ("validate", r"- .*times the held-out error of the identification.*"),
    "first second": ("start.py", r"(without|from) .*"),
    "compensation": ("compensate.py", r"RMS .*"),
}
TOLERANCE = 0.25
"""Relative difference of two numbers that count as equal: kernels round differently on other processors."""
SMALL = 0.02
"""Absolute difference that counts as equal."""
_NUMBER = re.compile(r"(?<![\w.])[+-]?\d+(?:\.\d+)?")
_WIDTH = 130


@command
def main(arguments: Sequence[str] | None = None) -> int:
    """Fill the page, or check it; the exit code."""
    parser = make_parser("tutorial", __doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; exit code 1 where the page is wrong")
    add_page(parser, TUTORIAL, *OUTPUTS)
    options = parser.parse_args(arguments)
    check, page = options.check, options.output
    with tempfile.TemporaryDirectory() as folder:
        printed = run(Path(folder))
    for name, lines in printed.items():
        if not check:
            page.fill(name, (f"    {line}" for line in lines))
    wrong = [text for name, lines in printed.items() for text in differences(name, lines)] if check else []
    print(*wrong, sep="\n")
    return 1 if wrong else 0


def run(folder: Path) -> dict[str, list[str]]:
    """Lines of every place, as its command prints them in a folder."""
    text = TUTORIAL.read_text(encoding="utf-8")
    program = re.search(r"```python\n(.*?)```", text, re.DOTALL)
    assert program is not None
    (folder / "start.py").write_text(program[1], encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": str(_WIDTH)}
    outputs = {}
    for one in commands(text):
        done = subprocess.run(one, cwd=folder, env=environment, capture_output=True, text=True, check=True)
        outputs[shlex.join(one)] = done.stdout + done.stderr
    return {
        name: [part for line in output.splitlines() if re.fullmatch(lines, line) for part in _wrapped(line)]
        for name, (part, lines) in OUTPUTS.items()
        for output in [next(text for one, text in outputs.items() if part in one)]
    }


def _wrapped(line: str) -> list[str]:
    """A line of a table as it stands, a sentence in the width of the page."""
    return [line.rstrip()] if line.startswith(" ") else textwrap.wrap(line, _WIDTH, subsequent_indent="  ")


def commands(text: str) -> Iterator[list[str]]:
    """Commands of the page, for this Python."""
    for line in re.findall(r"^    ((?:python3 run.py|.venv/bin/python) .*)$", text, re.MULTILINE):
        words = shlex.split(line)
        if words[0] == "python3":
            yield [sys.executable, "-m", "friction_estimator", *words[2:]]
        else:
            yield [sys.executable, *(str(ROOT / word) if word.startswith("examples/") else word for word in words[1:])]


def differences(name: str, lines: list[str]) -> Iterator[str]:
    """Lines of a place whose words or numbers are not those that the command prints, one sentence each."""
    text = TUTORIAL.read_text(encoding="utf-8")
    place = text.partition(f"<!-- begin of the {name} -->")[2].partition(f"<!-- end of the {name} -->")[0]
    shown = [line.strip() for line in place.splitlines() if line.strip()]
    if len(shown) != len(lines):
        yield f"{name}: the page has {len(shown)} lines, the command prints {len(lines)}"
    for old, new in zip(shown, lines, strict=False):
        before, after = ([float(number) for number in _NUMBER.findall(line)] for line in (old, new))
        same = _words(old) == _words(new) and len(before) == len(after)
        if not same or any(abs(a - b) > max(SMALL, TOLERANCE * abs(b)) for a, b in zip(before, after, strict=True)):
            yield f"{name}: the page has {old!r}, the command prints {new.strip()!r}"


def _words(line: str) -> list[str]:
    return _NUMBER.sub("#", line).split()


if __name__ == "__main__":
    sys.exit(main())
