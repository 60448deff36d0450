"""The benchmark simulates its walk."""

import pytest

pytest.importorskip("mujoco", reason="MuJoCo is not installed")
