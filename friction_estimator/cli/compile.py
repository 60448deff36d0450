"""``compile``: make the numerical kernels ready, so that nothing waits for the compiler later."""

from __future__ import annotations

import argparse
import importlib
import pkgutil

import friction_estimator
from friction_estimator import compiled

ROOMS = ("robot", "laws", "base", "estimation", "reference", "simulation", "learning", "collision")
"""Packages that may have kernels."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """No options."""


def run(arguments: argparse.Namespace) -> None:
    """Import all kernels, then compile those that no earlier run has left in the cache."""
    if not compiled.COMPILED:
        print(f"nothing to compile: {compiled.NOT_COMPILED}, and the kernels run as plain Python")
        return
    for module in pkgutil.walk_packages(friction_estimator.__path__, "friction_estimator."):
        if module.name.split(".")[1] in ROOMS:
            _import(module.name)
    compiled.prepare()
    print("the numerical kernels are ready")


def _import(name: str) -> None:
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("friction_estimator"):
            raise
        # a library that this room needs, and this installation has no use for
