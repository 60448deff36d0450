"""``compile``: the numerical kernels, before anything waits for them."""

from __future__ import annotations

import argparse
import importlib
import pkgutil

import friction_estimator
from friction_estimator.kernels import compiler

ROOMS = ("robot", "laws", "base", "estimation", "baselines", "simulation", "learning", "collision")
"""Packages that may have kernels."""


def run(arguments: argparse.Namespace) -> None:
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
