"""Claims about the list of parameters."""

from __future__ import annotations

from pathlib import Path

from friction_estimator.cli.main import main
from friction_estimator.config import parameter_fields

PAGE = Path(__file__).parents[2] / "docs" / "parameters.md"


def test_every_parameter_is_listed_with_its_description(capsys):
    assert main(["parameters"]) == 0
    printed = capsys.readouterr().out
    for item in parameter_fields(("FOOT",)):
        assert f"`{item.name}`" in printed and item.range.description in printed


def test_the_page_in_docs_is_the_present_list(capsys):
    main(["parameters"])
    table = capsys.readouterr().out.strip()
    assert table in PAGE.read_text(), "run: python3 run.py parameters, and paste the table into docs/parameters.md"
