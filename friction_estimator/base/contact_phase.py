"""Which feet stand: hysteresis and debounce on the measured normal force, not the clock of the paper."""

from __future__ import annotations

import math

import numpy as np

from friction_estimator.compiled import kernel
from friction_estimator.config import ContactPhaseConfig
from friction_estimator.types import BoolArray, ContactPhase, FloatArray

_RELEASE = 0.5
"""Threshold below which a foot is in the air, as a part of that above which it is in contact."""


@kernel("B V V B M B f8 f8 f8 f8 b1 B V", unchecked=True)
def step_contact(
    contact: BoolArray,
    crossed_for: FloatArray,
    since: FloatArray,
    was_fresh: BoolArray,
    wrenches: FloatArray,
    fresh: BoolArray,
    dt: float,
    on: float,
    off: float,
    debounce: float,
    running: bool,
    contact_out: BoolArray,
    since_out: FloatArray,
) -> None:
    """Advance the Schmitt trigger of each foot, in place; copy contact and time since its last change."""
    for foot in range(contact.size):
        force = wrenches[foot, 2]
        wants = force > (off if contact[foot] else on)
        if not running:
            contact[foot] = wants and fresh[foot]
            since[foot] = math.inf
        else:
            crossed_for[foot] = crossed_for[foot] + dt if wants != contact[foot] and fresh[foot] else 0.0
            change = not crossed_for[foot] <= debounce - 1e-9
            returned = fresh[foot] and not was_fresh[foot]
            if change:
                contact[foot] = not contact[foot]
                crossed_for[foot] = 0.0
            if returned:
                contact[foot] = force > on
            since[foot] = 0.0 if change or returned or not since[foot] >= 0.0 else since[foot] + dt
        was_fresh[foot] = fresh[foot]
        contact_out[foot], since_out[foot] = contact[foot], since[foot]


class ContactPhaseDetector:
    """Schmitt trigger with debounce for each foot.

    Parameters
    ----------
    config : thresholds as parts of the weight, debounce time
    weight : of the robot [N]
    support_names : (k) name of the phase in which only that foot stands
    """

    def __init__(self, config: ContactPhaseConfig, weight: float, support_names: tuple[str, ...]) -> None:
        self._thresholds = config.on_fraction * weight, _RELEASE * config.on_fraction * weight, config.debounce
        self._names = support_names
        self._phase_names: dict[bytes, str] = {}
        self.reset()

    def reset(self) -> None:
        """Decide anew, without debounce, at the next sample."""
        count = len(self._names)
        self._running = False
        self._contact: BoolArray = np.zeros(count, dtype=bool)
        self._crossed_for, self._since = np.zeros(count), np.zeros(count)
        self._was_fresh: BoolArray = np.zeros(count, dtype=bool)

    def step(self, wrenches: FloatArray, fresh: BoolArray, dt: float) -> ContactPhase:
        """Use the wrenches (k, 6) in the sole frames.

        A silent sensor leaves its foot as it was. With its first new reading the foot is decided anew and has just
        landed.
        """
        contact, since = np.empty(len(self._names), dtype=bool), np.empty(len(self._names))
        step_contact(
            self._contact,
            self._crossed_for,
            self._since,
            self._was_fresh,
            wrenches,
            fresh,
            dt,
            *self._thresholds,
            self._running,
            contact,
            since,
        )
        self._running = True
        return ContactPhase(contact, since, self.name(contact))

    def name(self, contact: BoolArray) -> str:
        """Name of the phase: ``flight``, one foot's name, ``double_support`` of two feet, or joined names."""
        key = contact.tobytes()
        if key not in self._phase_names:
            standing = [name for name, stands in zip(self._names, contact, strict=True) if stands]
            if not standing:
                label = "flight"
            elif len(self._names) == 2 and len(standing) == 2:
                label = "double_support"
            else:
                label = "+".join(standing)
            self._phase_names[key] = label
        return self._phase_names[key]
