"""Errors of a track against the ground truth.

Alignment: over the first second the mean yaw and position of a track are those of the truth, and nothing else. No time
is shifted: sample k of a track is compared with sample k of the truth.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.signal import savgol_filter
from scipy.spatial.transform import Rotation

from benchmarks.icub.recording import Recording
from benchmarks.icub.tracks import Track
from friction_estimator.types import BoolArray, FloatArray

_ALIGNED = 1.0
_END = 0.2
_WINDOW = 9


@dataclass(frozen=True, slots=True)
class Errors:
    """Of one track.

    Attributes
    ----------
    angle : (s, 3) roll, pitch, yaw [deg]
    position, velocity : (s, 3) [m, m/s], NaN where the track has none
    way : length of the horizontal way of the truth [m]
    duration : [s]
    """

    angle: FloatArray
    position: FloatArray
    velocity: FloatArray
    way: float
    duration: float

    @property
    def yaw_drift(self) -> float:
        """Yaw error at the end over the time since the alignment [deg/min]."""
        return 60.0 * float(self.angle[self._end, 2].mean()) / self.duration

    @property
    def end_position(self) -> FloatArray:
        """Position error at the end, (3,) [m]."""
        return np.asarray(self.position[self._end].mean(axis=0))

    @property
    def _end(self) -> slice:
        return slice(-max(1, round(_END / self.duration * len(self.angle))), None)


def errors_of(track: Track, recording: Recording) -> Errors:
    """Compare a track with the truth of its recording."""
    truth, n = recording.true_rotation, round(_ALIGNED / recording.period)
    yaw = float(np.unwrap((track.rotation * truth.inv()).as_euler("ZYX")[:, 0])[:n].mean())
    align = Rotation.from_euler("z", -yaw)
    angle = _wrapped((align * track.rotation).as_euler("ZYX") - truth.as_euler("ZYX"))[:, ::-1]
    smooth = savgol_filter(recording.true_position, _WINDOW, 2, axis=0)
    true_velocity = differentiated(recording.true_position, recording.period)
    position = velocity = np.full_like(smooth, np.nan)
    if track.position is not None and track.velocity is not None:
        position = align.apply(track.position) - recording.true_position
        position = position - position[:n].mean(axis=0)
        velocity = align.apply(track.velocity) - true_velocity
    way = float(np.linalg.norm(np.diff(smooth[:: _WINDOW * 5, :2], axis=0), axis=1).sum())
    return Errors(np.degrees(angle), position, velocity, way, float(recording.time[-1]))


def differentiated(position: FloatArray, period: float) -> FloatArray:
    """Velocity (s, 3) of positions by Vicon, without delay."""
    return np.asarray(savgol_filter(position, _WINDOW, 2, deriv=1, delta=period, axis=0))


def rms(values: FloatArray) -> FloatArray:
    """Root mean square over the samples, (3,)."""
    return np.asarray(np.sqrt((values**2).mean(axis=0)))


def _wrapped(angle: FloatArray) -> FloatArray:
    return np.asarray((angle + np.pi) % (2.0 * np.pi) - np.pi)


def reference_contact(recording: Recording, weight: float) -> BoolArray:
    """Non-causal reference of the contact of both soles (s, 2): forces above 5 % of the weight after a median filter.

    The median over 70 ms has no delay and passes no chatter; the online detector has hysteresis, debounce and neither
    of these.
    """
    half = 3
    padded = np.pad(recording.force, ((half, half), (0, 0)), mode="edge")
    middle = np.median(np.lib.stride_tricks.sliding_window_view(padded, 2 * half + 1, axis=0), axis=2)
    return np.asarray(middle > 0.05 * weight)


def contact_agreement(contact: BoolArray, reference: BoolArray) -> tuple[float, float]:
    """Part of the samples whose phase (both feet) agrees, and changes of contact per change of the reference."""
    changes, expected = (int(np.count_nonzero(np.diff(feet.astype(int), axis=0))) for feet in (contact, reference))
    return float((contact == reference).all(axis=1).mean()), changes / expected if expected else float("nan")
