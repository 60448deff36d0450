"""Are the error bars of `inverse_dynamics` honest, when friction has another shape than the law? Markdown to stdout.

    python benchmarks/sigma_coverage.py [--seeds 6]

The work is done in the package ``benchmarks/sigma_study``.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    from benchmarks.sigma_study.page import main

    sys.exit(main())
