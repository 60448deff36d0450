"""Studies of the package: each module or folder here is one, run as ``python -m benchmarks.NAME`` from the repository.

``python -m benchmarks.NAME --help`` shows the question of the study, its duration and its inputs.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before numpy: studies run processes in parallel, not threads
