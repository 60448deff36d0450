"""What does friction compensation bring? The walk of the paper in closed loop.

Writes docs/results/compensation.md and a figure.

    python benchmarks/compensation.py [--walks 3] [--controllers ours ...] [--methods measured ...]

The work is done in the package ``benchmarks/compensation``.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # the processes share the cores, not the threads of the algebra
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    from benchmarks.compensation.command import main

    sys.exit(main())
