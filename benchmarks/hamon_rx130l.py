"""Tables I-IV of Hamon et al. 2010 on a simulated RX130L joint 3; Markdown to stdout.

    python benchmarks/hamon_rx130l.py [--slowest 0.01]

The work is done in the package ``benchmarks/hamon``.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    from benchmarks.hamon.page import main

    sys.exit(main())
