"""``parameters``: every parameter of the YAML with its default, unit and range, as a Markdown table."""

from __future__ import annotations

import argparse
import math

from friction_estimator.config import ParameterField, parameter_fields

_EXAMPLE_FOOT = "FOOT"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """No options."""


def run(arguments: argparse.Namespace) -> None:
    """Print the table."""
    print(parameter_table())


def parameter_table() -> str:
    """Markdown table of all parameters; ``FOOT`` stands for each of ``feet.names``."""
    lines = ["| parameter | default | unit | valid | what |", "|---|---|---|---|---|"]
    lines += [_row(item) for item in parameter_fields((_EXAMPLE_FOOT,))]
    return "\n".join(lines)


def _row(item: ParameterField) -> str:
    default = "" if item.default in ((), "") else str(item.default).lower() if item.kind is bool else str(item.default)
    valid = ", ".join(item.range.choices)
    if math.isfinite(item.range.low) or math.isfinite(item.range.high):
        valid = f"{item.range.low:g} ... {item.range.high:g}"
    return f"| `{item.name}` | {default} | {item.range.unit} | {valid} | {item.range.description} |"
