"""Claims about the robots in config/robots: every parameter is explained, and the template shows true defaults."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from friction_estimator.config import Config, config_from_parameters, parameter_fields

FILES = sorted((Path(__file__).parents[2] / "config" / "robots").glob("*.yaml"))
SETTING = re.compile(r"^ *(?:# )?[a-z_]+: *\S")


def flat(tree: dict, prefix: str = "") -> dict:
    """Dotted names and values of a YAML."""
    result = {}
    for key, value in tree.items():
        result |= flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {prefix + key: value}
    return result


def config_of(text: str) -> Config:
    return config_from_parameters(flat(yaml.safe_load(text)["/**"]["ros__parameters"]))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_sentence_stands_above_every_parameter(path: Path):
    lines = path.read_text().splitlines()
    for above, line in zip(lines, lines[1:], strict=False):
        if SETTING.match(line) and not re.match(r"^ *[/*]|^ *ros__", line):
            assert re.match(r"^ *# [A-Z].*\.$", above), line


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_advanced_parameters_come_last(path: Path):
    config = config_of(path.read_text())
    advanced = {item.name: item.range.advanced for item in parameter_fields(tuple(foot.name for foot in config.feet))}
    order = [advanced[name] for name in flat(yaml.safe_load(path.read_text())["/**"]["ros__parameters"])]
    assert order == sorted(order)


def test_commented_lines_of_the_template_are_the_defaults():
    text = next(path for path in FILES if path.stem == "suralp").read_text()
    uncommented = re.sub(r"^( +)# ([a-z_]+:.*)$", r"\1\2", text, flags=re.MULTILINE)
    assert uncommented.count("\n") == text.count("\n") and uncommented != text
    assert config_of(uncommented) == config_of(text)
