"""How well is friction estimated? Every observer on every case and sensor level: writes docs/results/accuracy.md.

    python benchmarks/accuracy.py [--cases walk ...] [--noise paper_std ...] [--observers ...] [--seeds 2] [--quick]

The work is done in the package ``benchmarks/accuracy``.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # the processes share the cores, not the threads of the algebra
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    from benchmarks.accuracy.command import main

    sys.exit(main())
