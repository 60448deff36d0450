"""Does the friction of coupled motors come out as it went in (Guedelha et al. 2017)? Writes docs/results/guedelha.md.

    python benchmarks/guedelha_coupled.py [--duration 60] [--seed 1]

Needs matplotlib. The work is done in the package ``benchmarks/guedelha``.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    from benchmarks.guedelha.page import main

    sys.exit(main())
