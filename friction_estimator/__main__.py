"""``python -m friction_estimator`` is the same as ``friction_estimator``."""

import sys

from friction_estimator.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
