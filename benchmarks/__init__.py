"""Studies of the package: each module or folder here is one, run as ``python -m benchmarks.NAME`` from the repository.

``python -m benchmarks.NAME --help`` says what question the study answers, how long it takes and what it needs.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before numpy: studies run processes in parallel, not threads
