"""``compile``: the numerical kernels, before anything waits for them; ``parameters``: a table of all parameters."""

from __future__ import annotations

import argparse
import importlib
import math
import pkgutil
from collections.abc import Iterable

import friction_estimator
from friction_estimator.config import ParameterField, parameter_fields
from friction_estimator.io.node_parameters import ESTIMATOR_FIELDS
from friction_estimator.kernels import compiler

ROOMS = ("robot", "laws", "base", "estimation", "reference", "simulation", "learning", "collision")
"""Packages that may have kernels."""
_EXAMPLE_FOOT = "FOOT"


def run_compile(arguments: argparse.Namespace) -> None:
    """Import all kernels, then compile those that no earlier run has left in the cache."""
    if not compiler.COMPILED:
        print(f"nothing to compile: {compiler.NOT_COMPILED}, and the kernels run as plain Python")
        return
    for module in pkgutil.walk_packages(friction_estimator.__path__, "friction_estimator."):
        if module.name.split(".")[1] in ROOMS:
            try:
                importlib.import_module(module.name)
            except ModuleNotFoundError as error:  # a library that this room needs, and this installation has no use for
                if (error.name or "").startswith("friction_estimator"):
                    raise
    compiler.prepare()
    print("the numerical kernels are ready")


def run_parameters(arguments: argparse.Namespace) -> None:
    """Print the tables."""
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
