"""Which feet stand: hysteresis and debounce on the measured normal force, not the clock of the paper.

Feet in the air: a force sensor that carries nothing reads its bias.
"""

from __future__ import annotations

import math
from collections import deque
from typing import NamedTuple, Protocol

import numpy as np

from friction_estimator.kernels.compiler import entry_point
from friction_estimator.kernels.records import buffered_zeros, record
from friction_estimator.linear_algebra import DIVERGENCE_LIMIT
from friction_estimator.types import BoolArray, ContactPhase, Flags, FloatArray, Matrix, Tensor, Vector

CONTACT_FRACTION = 0.03
"""A foot that carries more than this part of the weight is in contact, and below half of it in the air."""
_DEBOUNCE = 0.008
"""Time for which a threshold must stay crossed before the contact changes [s]."""
_FRICTION_CONE = 1.0
"""Largest ratio of the force along the sole to the normal force that the ground exerts on a foot."""
_MIN_WINDOWS = 7
"""A foot is in the air when the force was small and steady for this many windows; the middle one gives the bias."""
_MAX_RANGE = 6.0
"""Range of the windows' mean forces, in standard deviations of one mean."""


@record
class ContactState(NamedTuple):
    """State of k triggers.

    Attributes
    ----------
    contact, was_fresh : (k,) 1 in stance, and where the sensor delivered at the last sample; else 0
    crossed_for, since : (k,) time since the force is beyond the threshold, since the last change, NaN at first [s]
    """

    contact: Vector
    crossed_for: Vector
    since: Vector
    was_fresh: Vector


@entry_point
def _step_contact(
    state: ContactState,
    wrenches: Matrix,
    fresh: Flags,
    dt: float,
    on: float,
    contact_out: Flags,
    since_out: Vector,
) -> None:
    """Advance the Schmitt trigger of each foot, in place; copy contact and time since its last change."""
    contact, crossed_for, since, was_fresh = state
    for foot in range(contact.size):
        force, stands = wrenches[foot, 2], contact[foot] == 1.0
        loaded = force > (0.5 * on if stands else on)
        if math.isnan(since[foot]):
            stands, since[foot] = loaded and fresh[foot], math.inf
        else:
            crossed_for[foot] = crossed_for[foot] + dt if loaded != stands and fresh[foot] else 0.0
            change = not crossed_for[foot] <= _DEBOUNCE - 1e-9
            returned = fresh[foot] and was_fresh[foot] == 0.0
            if change:
                stands = not stands
                crossed_for[foot] = 0.0
            if returned:
                stands = force > on
            since[foot] = 0.0 if change or returned else since[foot] + dt
        contact[foot], was_fresh[foot] = stands, fresh[foot]
        contact_out[foot], since_out[foot] = stands, since[foot]


@entry_point
def ground_wrenches(wrenches: Matrix, contact: Flags, ground: Matrix) -> None:
    """Write those of the measured foot wrenches (k, 6) that the ground exerts; zero for all other feet.

    The ground exerts the wrenches of feet in ``contact`` (k,), and those within the friction cone: a foot touches the
    ground some milliseconds before the contact is detected. Anything else that acts on a foot is a collision (Lim et
    al. 2024, section 7, classification).
    """
    for foot in range(contact.size):
        along_sole = math.hypot(wrenches[foot, 0], wrenches[foot, 1])
        is_ground = contact[foot] or along_sole <= _FRICTION_CONE * wrenches[foot, 2]
        for axis in range(6):
            ground[foot, axis] = wrenches[foot, axis] if is_ground else 0.0


@entry_point
def add_collisions_of_feet(
    J: Tensor,
    wrenches: Matrix,
    contact: Flags,
    keep: float,
    filtered: Vector,
    torque: Vector,
    sigma: Vector,
) -> None:
    """Add the torque of what hits a foot in the air to an external torque without any foot wrench, in place.

    The added torque passes a low-pass; the part that is still to come is added to sigma.

    Parameters
    ----------
    J : (k, 6, nv) of the soles
    wrenches, contact : as of :func:`ground_wrenches`
    keep : ``exp(-K dt)`` of the low-pass
    filtered : (n,) torque behind the low-pass, NaN at first; in place
    torque, sigma : (n,) external torque and its standard deviation [N m]
    """
    n, ground = torque.size, np.zeros_like(wrenches)
    ground_wrenches(wrenches, contact, ground)
    base = J.shape[2] - n
    for joint in range(n):
        collision_torque = 0.0
        for foot in range(contact.size):
            for axis in range(6):
                part = J[foot, axis, base + joint]
                if part != 0.0:
                    collision_torque += part * (wrenches[foot, axis] - ground[foot, axis])
        filtered[joint] = (
            collision_torque + keep * (filtered[joint] - collision_torque)
            if abs(filtered[joint]) <= DIVERGENCE_LIMIT
            else collision_torque
        )
        torque[joint] += filtered[joint]
        sigma[joint] = math.hypot(sigma[joint], collision_torque - filtered[joint])


class ContactPhaseDetector:
    """Schmitt trigger with debounce for each foot.

    Parameters
    ----------
    weight : of the robot [N]
    support_names : (k) name of the phase in which only that foot stands
    """

    def __init__(self, weight: float, support_names: tuple[str, ...]) -> None:
        self._threshold = CONTACT_FRACTION * weight
        self._names = support_names
        self._phase_names: dict[bytes, str] = {}
        self.reset()

    def reset(self) -> None:
        """Decide anew, without debounce, at the next sample."""
        self._buffer, state = buffered_zeros(ContactState, **dict.fromkeys(ContactState._fields, len(self._names)))
        state.since[:] = math.nan

    def step(self, wrenches: FloatArray, fresh: BoolArray, dt: float) -> ContactPhase:
        """Contact phase from the foot wrenches (k, 6) in the sole frames [N, N m].

        A silent sensor leaves its foot as it was. With its first new reading the foot is decided anew and has just
        landed.
        """
        contact, since = np.empty(len(self._names), dtype=bool), np.empty(len(self._names))
        _step_contact(self._buffer, wrenches, fresh, dt, self._threshold, contact, since)
        return ContactPhase(contact, since, self._phase_names.get(contact.tobytes()) or self.name(contact))

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


class FootWindow(Protocol):
    """Readings of k foot sensors over a time in which they hardly change."""

    @property
    def wrenches(self) -> FloatArray:
        """Means (k, 6)."""

    @property
    def normal_force(self) -> FloatArray:
        """Smallest and largest one (2, k) [N]."""

    @property
    def wrench_fresh(self) -> BoolArray:
        """True (k,) where no reading is stale."""

    @property
    def reading_counts(self) -> FloatArray:
        """Number of readings (1 + k), of the IMU and of the feet."""


class UnloadedFeet:
    """Finds feet in the air, and what their sensors read there.

    Such a foot carries next to nothing along any axis, and less than a foot that stands. Whether a force is small does
    not depend on the bias found so far: a bias identified too early, while the foot was still leaving the ground, would
    otherwise hide every later reading.

    Parameters
    ----------
    foot_count : k
    force_std : white noise of the force sensors [N]
    bias_std : of their bias, before any data [N]
    firm_force : a foot that carries more than this stands firmly [N]

    Attributes
    ----------
    unloaded : k, True where the foot has carried nothing in all of the last windows
    contact_transition : k, True where it is neither in the air nor firmly on the ground: it lands, lifts off, slips
    """

    def __init__(self, foot_count: int, force_std: float, bias_std: float, firm_force: float) -> None:
        self._count = foot_count
        self._bias_std, self._firm_force = bias_std, firm_force
        self.retune(force_std)
        self.reset()

    def retune(self, force_std: float) -> None:
        """Use the limits of this noise from now on."""
        self._force_std = force_std
        self._small = min(4.0 * force_std + 3.0 * self._bias_std, self._firm_force)

    def reset(self) -> None:
        """Forget the windows so far."""
        self._last: deque[FloatArray] = deque(maxlen=_MIN_WINDOWS)
        self._small_windows = [0] * self._count
        self.unloaded = [False] * self._count
        self.contact_transition = [True] * self._count

    def classify(self, window: FootWindow) -> FloatArray:
        """Classify the feet by a window; return mean wrenches (k, 6) of an earlier one, biases where ``unloaded``."""
        self._last.append(window.wrenches)
        lowest, highest = window.normal_force.tolist()
        for foot, fresh in enumerate(window.wrench_fresh.tolist()):
            small = -self._small < lowest[foot] and highest[foot] < self._small and fresh
            small = small and float(np.abs(window.wrenches[foot, :2]).max()) < self._small
            self._small_windows[foot] = self._small_windows[foot] + 1 if small else 0
            unloaded = self._small_windows[foot] >= _MIN_WINDOWS and self._steady(foot, window.reading_counts[1 + foot])
            self.unloaded[foot] = unloaded
            self.contact_transition[foot] = not unloaded and lowest[foot] < self._firm_force
        return self._last[len(self._last) // 2]

    def _steady(self, foot: int, reading_count: float) -> bool:
        """Whether the mean normal forces of the last windows differ by their noise only."""
        means = [wrenches[foot, 2] for wrenches in self._last]
        return bool(max(means) - min(means) <= _MAX_RANGE * self._force_std / math.sqrt(max(reading_count, 1.0)))
