"""Claims about the documentation: the reference is complete, and links lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

import friction_estimator
from friction_estimator.cli.main import VERBS
from friction_estimator.estimation.diagnosis import ADVICE
from friction_estimator.messages import topics

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted([*DOCS.rglob("*.md"), *ROOT.glob("*.md")])
LINK = re.compile(r"\]\((?!http)([^)#\s]+)[^)\s]*\)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_and_images_of_a_page_exist(page: Path) -> None:
    missing = [link for link in LINK.findall(page.read_text(encoding="utf-8")) if not (page.parent / link).exists()]
    assert missing == []


def test_every_page_is_in_the_navigation() -> None:
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    shown = re.findall(r"[\w/.-]+\.md", str(yaml.safe_load(text)["nav"]))
    assert sorted(shown) == sorted(str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md"))


@pytest.mark.parametrize(
    ("page", "names"),
    [
        (
            "reference/topics.md",
            [one.name for one in (*topics.OUTPUTS, topics.COMPENSATION, topics.BASE_TRANSFORM)],
        ),
        ("reference/command_line.md", list(VERBS)),
        ("guides/diagnosis.md", list(ADVICE)),
    ],
)
def test_a_table_names_everything(page: str, names: list[str]) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    assert [name for name in names if not re.search(rf"^\| `{re.escape(name)}\b", text, re.MULTILINE)] == []


def test_the_api_page_has_every_public_name() -> None:
    documented = re.findall(r"^::: (\S+)$", (DOCS / "reference" / "api.md").read_text(encoding="utf-8"), re.MULTILINE)
    modules = friction_estimator._MODULES
    public = {f"friction_estimator.{modules[name]}.{name}" for name in friction_estimator.__all__}
    assert public <= set(documented)


def test_every_module_that_a_page_names_exists() -> None:
    package = ROOT / "friction_estimator"
    places = (ROOT, package, package / "identification", package / "estimation" / "kalman", ROOT / "test")
    named = {path for page in PAGES for path in re.findall(r"`((?:\w+/)+\w+\.py)`", page.read_text(encoding="utf-8"))}
    placeholders = {path for path in named if "NAME" in path}
    assert {path for path in named - placeholders if not any((place / path).exists() for place in places)} == set()
