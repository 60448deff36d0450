"""Imported once by the process that Dask forks workers from, so that all of them share libraries and loaded kernels."""

import gc

from friction_estimator.fleet import bag_task
from friction_estimator.kernels import compiler

__all__ = ["bag_task"]

compiler.prepare()
gc.collect()
gc.freeze()  # the collectors of the workers do not search what is loaded, nor write to it, so that it stays shared
