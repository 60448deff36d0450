"""Do the columns mean what their names say? Velocity against the derivative of the position, joint by joint."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from scipy.integrate import cumulative_trapezoid

from friction_estimator.identification.joint_log import JointLog
from friction_estimator.identification.recording.joint_spectrum import joint_spectrum
from friction_estimator.identification.recording.sampling import evenly, longest_stretch
from friction_estimator.identification.recording.spectrum import SHORTEST
from friction_estimator.types import FloatArray

_ALIKE, _UNLIKE = 0.9, 0.75  # correlations
_CLOSE, _SCALED = 1.2, 1.5  # factors between slopes: equal below the first, in other units above the second
_MOVES, _MOVES_WELL = 5.0, 30.0  # times the noise of the position: enough to say what a column is, and what it is not
_SWING = 20.0  # samples, where a spectrum does not tell
_DEGREES = math.degrees(1.0)
_FACTORS = {
    _DEGREES: "is the velocity in degrees a second?",
    1.0 / _DEGREES: "is the position in degrees?",
    60.0 / (2.0 * math.pi): "is the velocity in revolutions a minute?",
    1e3: "is time in milliseconds?",
    1e6: "is time in microseconds?",
    1e9: "is time in nanoseconds?",
    1e-3: "is the position in millimetres or milliradians?",
}


def column_suspicions(log: JointLog, period: float) -> Iterator[str]:
    """Say which columns may be exchanged, reversed or in another unit.

    Parameters
    ----------
    log : repaired
    period : between two samples [s]
    """
    signals = _even(log, period)
    if signals is None:
        return
    found = _Increments(*signals[:2], period)
    for joint, name in enumerate(log.joint_names):
        if log.velocity is not None and found.motion[joint] > _MOVES:
            yield from _velocity_suspicion(found, joint, log.joint_names)
        if signals[2] is not None and found.motion[joint] > 0.0:
            yield from _roughness_suspicion(signals[0][:, joint], signals[2][:, joint], name)


def _even(log: JointLog, period: float) -> tuple[FloatArray, FloatArray | None, FloatArray | None] | None:
    """Position, velocity and effort of the longest stretch, on an even grid."""
    stretch = longest_stretch(log.time, period)
    if stretch.stop - stretch.start < SHORTEST:
        return None

    def even(signal: FloatArray | None) -> FloatArray | None:
        return None if signal is None else evenly(np.nan_to_num(signal), log.time, stretch, period, False)

    position = even(log.position)
    return None if position is None else (position, even(log.velocity), even(log.effort))


class _Increments:
    """Changes of position and velocity over half a swing, against the integrals of velocity and position over it.

    Differences over a swing are large against the bits of an encoder, where a derivative is not.
    """

    def __init__(self, position: FloatArray, velocity: FloatArray | None, period: float) -> None:
        spectra = [joint_spectrum(column, period, 0) for column in position.T]
        self.motion = [spectrum.excursion for spectrum in spectra]
        swing = [_SWING if math.isnan(s.travel_hz) else 0.5 / (s.travel_hz * period) for s in spectra]
        self._steps = np.clip(np.rint(swing), 1, max(position.shape[0] // 10, 1)).astype(int)
        self._position, self._velocity = position, velocity
        self._travel = self._integral(position - position.mean(axis=0), period)
        self._walk = None if velocity is None else self._integral(velocity, period)

    @staticmethod
    def _integral(signal: FloatArray, period: float) -> FloatArray:
        return np.asarray(cumulative_trapezoid(signal, dx=period, axis=0, initial=0.0))

    def velocity_against(self, joint: int, other: int) -> tuple[float, float]:
        """Correlation of the velocity of a joint with the change of the position of another, and their ratio."""
        if self._walk is None:
            return 0.0, 0.0
        return self._changes(self._walk[:, joint], self._position[:, other], self._steps[joint])

    def position_against_velocity(self, joint: int) -> tuple[float, float]:
        """Correlation of the position of a joint with the change of its velocity, and their ratio."""
        if self._velocity is None:
            return 0.0, 0.0
        return self._changes(self._travel[:, joint], self._velocity[:, joint], self._steps[joint])

    @staticmethod
    def _changes(one: FloatArray, other: FloatArray, steps: int) -> tuple[float, float]:
        return _compare(one[steps:] - one[:-steps], other[steps:] - other[:-steps])


def _compare(a: FloatArray, b: FloatArray) -> tuple[float, float]:
    """Correlation of a with b, and how many times as large as b it is."""
    a, b = a - a.mean(), b - b.mean()
    aa, bb, ab = float(a @ a), float(b @ b), float(a @ b)
    if aa <= 0.0 or bb <= 0.0:
        return 0.0, 0.0
    return ab / math.sqrt(aa * bb), math.copysign(math.sqrt(aa / bb), ab)


def _near(value: float, wanted: float, factor: float = _CLOSE) -> bool:
    return wanted / factor < value < wanted * factor


def _velocity_suspicion(found: _Increments, joint: int, names: tuple[str, ...]) -> Iterator[str]:
    name = names[joint]
    alike, factor = found.velocity_against(joint, joint)
    evidence = f"velocity/{name} is {factor:.3g} times the derivative of position/{name} (correlation {alike:.2f})"
    back, back_factor = found.position_against_velocity(joint)
    if alike < _UNLIKE and back > _ALIKE and _near(back_factor, 1.0):
        yield (
            f"position/{name} is the derivative of velocity/{name} (correlation {back:.2f}): are the two columns "
            "exchanged?"
        )
    elif alike > _ALIKE and not _near(factor, 1.0, _SCALED):
        yield f"{evidence}: {_meaning(factor)}"
    elif alike < -_ALIKE:
        yield f"{evidence}: does one of them have the wrong sign?"
    elif alike < _UNLIKE and (other := _other_joint(found, joint, names)):
        yield other
    elif alike < _UNLIKE and found.motion[joint] > _MOVES_WELL:
        yield (
            f"velocity/{name} has little to do with the derivative of position/{name} (correlation {alike:.2f}): is it "
            "the right column?"
        )


def _meaning(factor: float) -> str:
    for known, meaning in _FACTORS.items():
        if _near(factor, known):
            return meaning
    return "are units, time or a gear ratio wrong?"


def _other_joint(found: _Increments, joint: int, names: tuple[str, ...]) -> str:
    for other, name in enumerate(names):
        alike, factor = found.velocity_against(joint, other)
        if other != joint and alike > _ALIKE and _near(factor, 1.0):
            return (
                f"velocity/{names[joint]} is the derivative of position/{name} (correlation {alike:.2f}), not of "
                f"position/{names[joint]}: are columns of these joints exchanged?"
            )
    return ""


def _roughness_suspicion(position: FloatArray, effort: FloatArray, name: str) -> Iterator[str]:
    """A position is an integral of an integral of the torque, hence much the smoother of the two."""
    rough, smooth = _roughness(position), _roughness(effort)
    if smooth > 0.0 and rough > 3.0 * smooth and rough > 0.05:
        yield (
            f"position/{name} is rougher than effort/{name} (second differences {rough:.2g} and {smooth:.2g} of the "
            "standard deviation): are the two columns exchanged?"
        )


def _roughness(signal: FloatArray) -> float:
    return float(np.std(np.diff(signal, 2)) / np.std(signal)) if np.ptp(signal) > 0.0 else 0.0
