"""Imported once by the process that Dask forks workers from, so that all of them share libraries and loaded kernels."""

from friction_estimator import compiled
from friction_estimator.fleet import bag_task

__all__ = ["bag_task"]

compiled.prepare()
