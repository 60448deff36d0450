"""History of a Kalman filter, and fixed-interval smoothing backward over it (Bryson & Frazier 1963; Bierman 1973).

The Rauch-Tung-Striebel smoother inverts the predicted covariance at every step. Here that matrix is singular (what is
switched off, and the common scale of the torques, has no variance) and large, so the modified Bryson-Frazier form is
used: it needs no inverse. Backward from the newest record run the adjoint ``lam`` of the state and its covariance
``Lam``; what later readings change at an instant is

    x_smoothed = x - P lam          P_smoothed = P - P Lam P

with x and P those of the filter then. Each record transforms both from after its event to before it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from friction_estimator.types import FloatArray


class Record(Protocol):
    """One thing that happened to a filter with a state of ``s`` numbers."""

    def back(self, lam: FloatArray, Lam: FloatArray) -> None:
        """Pass the adjoint (s,) and its covariance (s, s) from after it to before, in place."""
        ...


@dataclass(frozen=True, slots=True)
class Transition:
    """``x[rows] -= columns @ x``: the transition of the momentum.

    Attributes
    ----------
    rows : m of them
    columns : (m, s)
    """

    rows: slice
    columns: FloatArray

    def back(self, lam: FloatArray, Lam: FloatArray) -> None:
        """``F^T lam``, ``F^T Lam F``."""
        lam -= self.columns.T @ lam[self.rows]
        Lam -= self.columns.T @ Lam[self.rows]
        Lam -= Lam[:, self.rows] @ self.columns


@dataclass(frozen=True, slots=True)
class Decay:
    """``x[rows] *= factor``: the decay of the model error; a factor of zero forgets."""

    rows: slice
    factor: float | FloatArray

    def back(self, lam: FloatArray, Lam: FloatArray) -> None:
        """``F^T lam``, ``F^T Lam F``."""
        lam[self.rows] *= self.factor
        Lam[self.rows] *= np.reshape(self.factor, (-1, 1))
        Lam[:, self.rows] *= self.factor


@dataclass(frozen=True, slots=True)
class Measurement:
    """A reading of ``x[rows]``.

    Attributes
    ----------
    rows : m of them
    innovation : (m,)
    covariance : (m, m) S, of the innovation
    gain : (s, m) K
    """

    rows: slice
    innovation: FloatArray
    covariance: FloatArray
    gain: FloatArray

    def back(self, lam: FloatArray, Lam: FloatArray) -> None:
        """``(I - K C)^T lam - C^T S^-1 innovation``, and its covariance."""
        information = np.linalg.pinv(self.covariance, hermitian=True)
        lam[self.rows] -= self.gain.T @ lam + information @ self.innovation
        Lam[self.rows] -= self.gain.T @ Lam
        Lam[:, self.rows] -= Lam @ self.gain
        Lam[self.rows, self.rows] += information


@dataclass(frozen=True, slots=True)
class SchmidtUpdate:
    """A reading of ``x[rows]`` from which a part of the state must not learn: its rows of the gain K (s, m) are zero.

    The smoother leaves that part as it is, too. The rest forgets soon, and gets nothing about the time before.
    """

    rows: slice
    gain: FloatArray

    def back(self, lam: FloatArray, Lam: FloatArray) -> None:
        """``(I - K C)^T lam``, and its covariance."""
        lam[self.rows] -= self.gain.T @ lam
        Lam[self.rows] -= self.gain.T @ Lam
        Lam[:, self.rows] -= Lam @ self.gain


@dataclass(frozen=True, slots=True)
class ConstraintStep:
    """Shift of the state by ``P direction`` to a bound that holds at all times; the covariance P stays as it is."""

    rows: slice
    direction: FloatArray

    def back(self, lam: FloatArray, Lam: FloatArray) -> None:
        """``lam - direction``."""
        lam[self.rows] -= self.direction


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The filter at the end of a window, as far as its output needs it.

    Attributes
    ----------
    time : [s]
    rows : r of the state
    state : (r,)
    covariance : (r, s) these rows of P
    """

    time: float
    rows: slice
    state: FloatArray
    covariance: FloatArray

    def back(self, lam: FloatArray, Lam: FloatArray) -> None:
        """Nothing happens."""

    def smoothed(self, lam: FloatArray, Lam: FloatArray) -> tuple[FloatArray, FloatArray]:
        """State (r,) and covariance (r, r) of its rows with all that came later."""
        P = self.covariance
        return self.state - P @ lam, P[:, self.rows] - P @ Lam @ P.T


def sweep(records: list[Record], until: float) -> list[tuple[float, FloatArray, FloatArray]]:
    """Smooth backward from the newest record.

    Parameters
    ----------
    records : oldest first
    until : snapshots after this time only look ahead, they are not smoothed themselves [s]

    Returns
    -------
    list
        Time [s], state (r,) and covariance (r, r) of each snapshot, oldest first.
    """
    snapshots = [record for record in records if isinstance(record, Snapshot)]
    if not snapshots:
        return []
    size = snapshots[0].covariance.shape[1]
    lam, Lam = np.zeros(size), np.zeros((size, size))
    smoothed = []
    for record in reversed(records):
        if isinstance(record, Snapshot) and record.time <= until:
            smoothed.append((record.time, *record.smoothed(lam, Lam)))
        record.back(lam, Lam)
    return smoothed[::-1]
