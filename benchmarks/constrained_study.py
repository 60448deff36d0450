"""What is the constrained-dynamics observer (Egle 2021) worth? Writes docs/results/constrained.md and three figures.

    python benchmarks/constrained_study.py [--duration 22]

Needs matplotlib. The work is done in the package ``benchmarks/constrained``.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    from benchmarks.constrained.page import main

    sys.exit(main())
