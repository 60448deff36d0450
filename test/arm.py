"""The arm of `fe.example("arm")` with its known friction, for tests of the Python API and of the command line."""

from __future__ import annotations

from pathlib import Path

from friction_estimator.api.simulate import ARM_COULOMB as COULOMB
from friction_estimator.api.simulate import ARM_NOISE as NOISE
from friction_estimator.api.simulate import ARM_VISCOUS as VISCOUS

ARM = Path(__file__).parents[1] / "urdf" / "arm.urdf"
URDF = ARM.read_text()
JOINTS = ("shoulder", "elbow")

__all__ = ["ARM", "COULOMB", "JOINTS", "NOISE", "URDF", "VISCOUS"]
