"""Tables 6.1 and 6.2 and figures 7.2, 7.5 and 7.6 of Egle 2021 on our robot.

Writes docs/results/egle.md and two figures.

    python benchmarks/egle_identification.py [--duration 14] [--quick]

Needs matplotlib. The work is done in the package ``benchmarks/egle``.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    from benchmarks.egle.page import main

    sys.exit(main())
