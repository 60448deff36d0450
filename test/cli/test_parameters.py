"""Claims about the parameters as a user meets them: list, descriptions, and names in the documentation."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from friction_estimator.cli.main import main
from friction_estimator.config import ParameterField, parameter_fields
from friction_estimator.io.node_parameters import NODE_FIELDS

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "parameters.md"
FIELDS = parameter_fields(("FOOT",))
NODE_ONLY = tuple({item.name: item for fields in NODE_FIELDS.values() for item in fields}.values())
UNCLEAR = re.compile(
    r"\b(told|tells|said|says|knows|speaks|silent for|is asked|so many|such that|hindsight|blows?|way|beside"
    r"|of its own|likewise|as above)\b|\bwhat\b.*\bmisses\b",
    re.IGNORECASE,
)
"""Words of a sentence that does not stand alone."""


def test_at_most_seventy_parameters_and_few_of_them_for_everybody():
    assert len(FIELDS) <= 70
    assert sum(not item.range.advanced for item in FIELDS) <= 50


@pytest.mark.parametrize("item", [*FIELDS, *NODE_ONLY], ids=lambda item: item.name)
def test_a_description_is_a_short_sentence_that_stands_alone(item: ParameterField):
    text = item.range.description
    assert re.match(r"[A-Z/]", text) and text.endswith(".") and len(text) < 160, text
    unclear = UNCLEAR.search(text)
    assert not unclear, f"{item.name}: write the noun or the value in place of {unclear[0]!r}"


def test_no_two_descriptions_are_the_same():
    assert len({item.range.description for item in FIELDS}) == len(FIELDS)


@pytest.mark.parametrize("item", [item for item in FIELDS if item.range.choices], ids=lambda item: item.name)
def test_a_default_is_one_of_the_choices_and_the_description_names_them_all(item: ParameterField):
    assert item.default in item.range.choices
    assert all(choice in item.range.description for choice in item.range.choices)


def test_every_parameter_is_listed_with_its_description_and_the_advanced_ones_last(capsys):
    assert main(["parameters"]) == 0
    public, advanced = capsys.readouterr().out.split("## Advanced parameters")
    for item in FIELDS:
        section = advanced if item.range.advanced else public
        assert f"| `{item.name}` |" in section and item.range.description in section


def test_the_page_in_docs_is_the_present_list(capsys):
    main(["parameters"])
    tables = capsys.readouterr().out.strip()
    assert tables in PAGE.read_text(), "run: python3 run.py parameters, and paste the tables into the page"


def test_the_documentation_names_only_parameters_that_exist():
    names = {item.name for item in FIELDS}
    sections = sorted({name.split(".")[0] for name in names if "." in name} - {"feet"})
    mention = re.compile(rf"`({'|'.join(sections)})\.(\w+)[`:]")
    for page in [*ROOT.glob("docs/**/*.md"), *ROOT.glob("README.md")]:
        found = {".".join(match.groups()) for match in mention.finditer(page.read_text())}
        unknown = {name for name in found if not any(each.startswith(name) for each in names)}
        assert not {name for name in unknown if not name.endswith((".md", ".yaml"))}, page
