"""The arm of `examples/arm.urdf` with known friction, for tests of the Python API and of the command line."""

from __future__ import annotations

from pathlib import Path

import numpy as np

ARM = Path(__file__).parents[1] / "examples" / "arm.urdf"
URDF = ARM.read_text()
JOINTS = ("shoulder", "elbow")
COULOMB, VISCOUS = np.array([1.5, 0.6]), np.array([0.8, 0.3])
NOISE = 0.05
"""Standard deviation of the recorded torque [N m]."""
