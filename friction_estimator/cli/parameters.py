"""``parameters``: a table of all parameters."""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterable

from friction_estimator.config import ParameterField, parameter_fields
from friction_estimator.io.node_parameters import ESTIMATOR_FIELDS

_EXAMPLE_FOOT = "FOOT"


def run(arguments: argparse.Namespace) -> None:
    """Print the tables of all parameters."""
    print(_parameter_tables())


def _parameter_tables() -> str:
    """Markdown tables of the parameters, advanced ones last; ``FOOT`` stands for each of ``feet.names``."""
    fields = parameter_fields((_EXAMPLE_FOOT,))
    sections = (
        ("Parameters of a robot", (item for item in fields if not item.range.advanced)),
        ("Parameters of the estimator node", ESTIMATOR_FIELDS),
        ("Advanced parameters", (item for item in fields if item.range.advanced)),
    )
    return "\n\n".join(f"## {title}\n\n{_table(items)}" for title, items in sections)


def _table(items: Iterable[ParameterField]) -> str:
    header = ["| parameter | default | unit | valid | description |", "|---|---|---|---|---|"]
    return "\n".join([*header, *(_row(item) for item in items)])


def _row(item: ParameterField) -> str:
    default = str(item.default)
    if isinstance(item.default, tuple):
        default = ", ".join(f"{element:g}" if isinstance(element, float) else element for element in item.default)
    elif isinstance(item.default, bool):
        default = default.lower()
    valid = ", ".join(item.range.choices)
    if math.isfinite(item.range.low) or math.isfinite(item.range.high):
        valid = f"{item.range.low:g} ... {item.range.high:g}"
    return f"| `{item.name}` | {default} | {item.range.unit} | {valid} | {item.range.description} |"
