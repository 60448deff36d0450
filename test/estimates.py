"""Friction estimates from arrays by name, for tests of what uses them."""

from __future__ import annotations

import dataclasses

from friction_estimator.types import FrictionEstimate, LawEstimate


def estimate_from(**values: object) -> FrictionEstimate:
    """Build an estimate from flat fields; the friction of the joints and its law are put where they belong."""
    law = LawEstimate(**{field.name: values.pop(field.name) for field in dataclasses.fields(LawEstimate)})
    return FrictionEstimate(**values, law=law)
