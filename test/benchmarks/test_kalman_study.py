"""The variants of docs/results/kalman.md."""

from __future__ import annotations

import pytest

pytest.importorskip("mujoco", reason="the runs of the study are simulated")

from benchmarks.kalman.variants import VARIANTS
from benchmarks.shared.estimates import changed_config


def test_every_variant_is_a_valid_configuration() -> None:
    for variant in VARIANTS:
        changed_config("suralp", variant.changes)
