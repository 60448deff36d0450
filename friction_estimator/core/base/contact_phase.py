"""Which feet stand: hysteresis and debounce on the measured normal force, not the clock of the paper."""

from __future__ import annotations

import numpy as np

from friction_estimator.core.config import ContactPhaseConfig
from friction_estimator.core.types import BoolArray, ContactPhase, FloatArray


class ContactPhaseDetector:
    """Schmitt trigger with debounce for each foot.

    Parameters
    ----------
    config : thresholds as parts of the weight, debounce time
    weight : of the robot [N]
    support_names : (k) name of the phase in which only that foot stands
    """

    def __init__(self, config: ContactPhaseConfig, weight: float, support_names: tuple[str, ...]) -> None:
        self._on = config.on_fraction * weight
        self._off = config.off_fraction * weight
        self._debounce = config.debounce
        self._sign_suspect_after = config.sign_suspect_after
        self._names = support_names
        self._phase_names: dict[bytes, str] = {}
        self.reset()

    def reset(self) -> None:
        """Decide anew, without debounce, at the next sample."""
        count = len(self._names)
        self._running = False
        self._contact = np.zeros(count, dtype=bool)
        self._crossed_for = np.zeros(count)
        self._since = np.zeros(count)
        self._pulling_for = np.zeros(count)
        self._was_fresh = np.zeros(count, dtype=bool)

    def step(self, wrenches: FloatArray, fresh: BoolArray, dt: float) -> ContactPhase:
        """Use the wrenches (k, 6) in the sole frames.

        A silent sensor leaves its foot as it was; when it speaks again, the foot is decided anew and has just landed.
        """
        normal_force = wrenches[:, 2]
        wants = np.where(self._contact, normal_force > self._off, normal_force > self._on)
        if not self._running:
            self._contact, self._running = wants & fresh, True
            self._since = np.full(len(self._names), np.inf)
        else:
            self._crossed_for = np.where((wants != self._contact) & fresh, self._crossed_for + dt, 0.0)
            change = self._crossed_for > self._debounce - 1e-9
            self._contact = self._contact ^ change
            returned = fresh & ~self._was_fresh
            self._contact = np.where(returned, normal_force > self._on, self._contact)
            self._since = np.where(change | returned, 0.0, self._since + dt)
            self._crossed_for[change] = 0.0
        self._was_fresh = fresh
        self._pulling_for = np.where((normal_force < -self._on) & fresh, self._pulling_for + dt, 0.0)
        return ContactPhase(contact=self._contact, since=self._since, name=self.name(self._contact))

    def sign_suspect(self) -> BoolArray:
        """Feet that seem to be pulled to the ground, (k,): the sensor's sign is probably flipped."""
        return self._pulling_for > self._sign_suspect_after

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
