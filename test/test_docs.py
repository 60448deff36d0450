"""Claims about the documentation: the reference is complete, and links lead somewhere."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
import yaml

import friction_estimator
from friction_estimator.cli.main import VERBS
from friction_estimator.estimation.health import SensorFault
from friction_estimator.estimation.validity import Reason
from friction_estimator.messages import topics

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted([*DOCS.rglob("*.md"), *ROOT.glob("*.md")])
TROUBLES = "guides/what_can_go_wrong.md"
CODE = [
    ast.parse(path.read_text(encoding="utf-8"))
    for room in ("estimation", "ros", "learning")
    for path in (ROOT / "friction_estimator" / room).rglob("*.py")
]
VALUE = re.compile(r"'[^']*'|[\w.]*(?:joint_states|l_foot|\w/\w)[\w./]*|[\d.]+%?|[:;,()?=]|\. ")
"""What differs between two findings of one kind, and what may stand between the parts of a text."""
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
        ("guides/diagnosis.md", [reason.value for reason in Reason]),
        (TROUBLES, [*(reason.value for reason in Reason), *(kind.value for kind in SensorFault)]),
    ],
)
def test_a_table_names_everything(page: str, names: list[str]) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    assert [name for name in names if not re.search(rf"^\| `{re.escape(name)}\b", text, re.MULTILINE)] == []


def events() -> set[str]:
    """Codes of the events in the code."""
    calls = [node for tree in CODE for node in ast.walk(tree) if isinstance(node, ast.Call)]
    adders = "add_event", "add_lasting_event", "add_restart"
    codes = [node.args[0] for node in calls if isinstance(node.func, ast.Attribute) and node.func.attr in adders]
    return {one.value for one in codes if isinstance(one, ast.Constant)}


def test_every_event_has_its_row() -> None:
    text = (DOCS / TROUBLES).read_text(encoding="utf-8")
    assert {"gap", "sensor", "missing_velocity"} <= events()
    assert {code for code in events() if f"| `{code}` |" not in text} == set()


def test_the_texts_of_the_diagnosis_are_those_of_the_code() -> None:
    """Word by word, but for values: each part of a quoted text is in the code, or is up to three parts that are."""
    constants = [node.value for tree in CODE for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    code = "\n".join(value for value in constants if isinstance(value, str))
    rows = [line for line in (DOCS / TROUBLES).read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    quoted = [text for row in rows for text in re.findall(r"`([^`]*)`", row.split(" | ")[1])]
    parts = {part.strip() for text in quoted for part in VALUE.split(text)} - {""}
    assert len(quoted) > 40 and len(parts) > 80

    def written(part: str, pieces: int = 3) -> bool:
        ends = (part[place:] for place in range(1, len(part)) if pieces > 1 and part[:place] in code)
        return part in code or any(written(end, pieces - 1) for end in ends)

    assert {part for part in parts if not written(part)} == set()


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


def test_the_files_of_the_identification_are_those_of_its_table() -> None:
    """A row names files and folders of the room; the row of a folder also names the files in it."""
    room = ROOT / "friction_estimator" / "identification"
    page = (DOCS / "design" / "identification.md").read_text(encoding="utf-8")
    table = page.split("| file or folder | holds |")[1].split("\n\n")[0]
    named, rows = set[str](), re.findall(r"^\| ([^|]*) \| (.*) \|$", table, re.MULTILINE)
    for places, content in rows:
        named |= set(re.findall(r"`(\w+)`", places))
        for folder in re.findall(r"`(\w+/)`", places):
            named |= {folder + name for name in re.findall(r"`([a-z_]+)`", content)}
    files = {path.relative_to(room).with_suffix("").as_posix() for path in room.rglob("*.py")}
    assert {name for name in files if not name.endswith("__init__")} == named


NEW_IN_A_RECIPE = {
    "NO_EFFORT", "QuasiStaticObserver", "TemperatureSample", "TwistStamped", "_check_silent_motors", "_temperature",
    "_twist", "about_slow_motion", "add_temperature", "coulomb_positive", "export_csv", "median_filter", "start_delay",
    "stribeck_covariance", "stribeck_of_direction", "temperature_topic",
}  # fmt: skip
"""Names that a reader of docs/extending.md writes himself."""


def test_every_name_in_the_recipes_exists() -> None:
    """Names of one word may be plain English; those with an underscore, or in capitals within, are of the code."""
    files = [path for room in ("friction_estimator", "test") for path in (ROOT / room).rglob("*.py")]
    words = {word for path in files for word in re.findall(r"\w+", path.read_text(encoding="utf-8"))}
    words |= {path.stem for path in files}
    recipes = (DOCS / "extending.md").read_text(encoding="utf-8")
    quoted = re.findall(r"`([^`\n]+)`", recipes) + re.findall(r"(?s)```python\n(.*?)```", recipes)
    named = {
        name for text in quoted for name in re.findall(r"\b(?:\w*[a-z]_\w+|_[a-z]\w+|[A-Z][a-z]+[A-Z]\w+)\b", text)
    }
    assert len(named) > 60
    assert named - words - NEW_IN_A_RECIPE == set()


def test_every_function_and_every_test_of_the_map_of_equations_exists() -> None:
    files = [path for room in ("friction_estimator", "benchmarks", "test") for path in (ROOT / room).rglob("*.py")]
    words = {word for path in files for word in re.findall(r"\w+", path.read_text(encoding="utf-8"))}
    words |= {path.name for path in files}
    rows = re.findall(r"^\|.*\|$", (DOCS / "design" / "equations.md").read_text(encoding="utf-8"), re.MULTILINE)
    cells = [cell for row in rows for cell in re.split(r"(?<!\\)\|", row)[-3:-1]]
    named = {name for cell in cells for name in re.findall(r"`(?:[\w/]*/)?([A-Za-z_][\w.]+)`", cell)}
    parts = {
        part for name in named for part in ([name] if name.endswith(".py") else name.removesuffix("...").split("."))
    }
    missing = {part for part in parts - words if not any(word.startswith(part) for word in words)}
    assert len(parts) > 200 and missing == set()
