"""Which parts of the Kalman stage are worth what, and is its plain covariance form safe? Writes docs/results/kalman.md.

    python benchmarks/kalman_study.py [--duration 20] [--seeds 1] [--processes 2]

The work is done in the package ``benchmarks/kalman``.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    from benchmarks.kalman.page import main

    sys.exit(main())
