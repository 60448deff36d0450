"""The tutorial: its commands run as they stand, and print what the page shows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks import tutorial


def test_a_wrong_number_a_wrong_word_and_a_missing_line_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "tutorial.md"
    page.write_text("<!-- begin of the bag -->\n\n    walk: 20.0 s\n    knee 0.50 N m\n\n<!-- end of the bag -->\n")
    monkeypatch.setattr(tutorial, "TUTORIAL", page)
    assert list(tutorial.differences("bag", ["walk: 20.1 s", "knee 0.55 N m"])) == []
    assert list(tutorial.differences("bag", ["walk: 20.1 s", "knee 0.80 N m"])) == [
        "bag: the page has 'knee 0.50 N m', the command prints 'knee 0.80 N m'"
    ]
    assert len(list(tutorial.differences("bag", ["run: 20.0 s"]))) == 2


@pytest.mark.slow
def test_the_tutorial_shows_what_its_commands_print(tmp_path: Path) -> None:
    printed = tutorial.run(tmp_path)
    assert all(printed.values())
    assert [text for name, lines in printed.items() for text in tutorial.differences(name, lines)] == []
    text = tutorial.TUTORIAL.read_text(encoding="utf-8")
    prose = re.sub(r"(?ms)<!-- begin.*?<!-- end|```.*?```|^    [^\n]*$", "", text)
    assert re.findall(r"(?<!Python )\b\d\.\d+", prose) == []  # measured numbers stand in the output of a command
