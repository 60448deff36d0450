"""Claims about where the friction of a joint was seen."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from friction_estimator.io.export.exporter import operating_range
from test.known_identification import make_identification

SAMPLES = make_identification(("hip",)).samples[0]


def test_the_operating_range_holds_used_samples_in_pairs_over_all_velocities() -> None:
    velocity, load = operating_range(SAMPLES)
    used = SAMPLES.velocity[SAMPLES.used]
    assert (np.diff(velocity) >= 0.0).all() and 48 <= velocity.size <= 72
    assert velocity[0] < 0.95 * used.min() and velocity[-1] > 0.95 * used.max()
    assert np.abs(velocity).min() > 0.02 > np.abs(SAMPLES.velocity).min()
    rows = np.abs(used[None, :] - velocity[:, None]).argmin(axis=1)
    np.testing.assert_allclose(used[rows], velocity, rtol=1e-5)
    np.testing.assert_allclose(SAMPLES.load[SAMPLES.used][rows], load, rtol=1e-5)


def test_rare_velocities_count_as_much_as_frequent_ones() -> None:
    """One fast sample among many slow ones."""
    velocity = np.append(np.linspace(-0.1, 0.1, 1000), 1.0)
    samples = replace(SAMPLES, **{name: np.ones(1001) for name in ("friction", "load", "fitted", "sigma")})
    seen, _ = operating_range(replace(samples, velocity=velocity, used=np.ones(1001, dtype=bool)))
    assert len(seen) < 30 and seen[-1] == 1.0


def test_unknown_loads_count_as_zero_and_without_used_samples_the_range_is_empty() -> None:
    velocity, load = operating_range(replace(SAMPLES, load=np.full(SAMPLES.load.size, np.nan)))
    assert not load.any() and len(velocity) > 20
    assert not operating_range(replace(SAMPLES, used=np.zeros(SAMPLES.used.size, dtype=bool)))[0].size
