"""Rotations for the hot path: plain functions on 3-vectors, matrices and unit quaternions ``(w, x, y, z)``.

scipy's ``Rotation`` is the reference in the tests; it costs ten times as much for a single rotation.
"""

from __future__ import annotations

import math

import numpy as np

from friction_estimator.core.types import FloatArray


def cross(a: FloatArray, b: FloatArray) -> FloatArray:
    """Cross product of two 3-vectors."""
    ax, ay, az = a.tolist()
    bx, by, bz = b.tolist()
    return np.array([ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx])


def skew(a: FloatArray) -> FloatArray:
    """Matrix with ``skew(a) @ b = a x b``, (3, 3)."""
    x, y, z = a.tolist()
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])


def quaternion_exp(rotation_vector: FloatArray) -> FloatArray:
    """Unit quaternion of a rotation vector [rad], (4,)."""
    x, y, z = (0.5 * rotation_vector).tolist()
    angle = math.sqrt(x * x + y * y + z * z)
    scale = math.sin(angle) / angle if angle > 1e-9 else 1.0 - angle * angle / 6.0
    return np.array([math.cos(angle), scale * x, scale * y, scale * z])


def quaternion_right_matrix(q: FloatArray) -> FloatArray:
    """Matrix with ``quaternion_right_matrix(q) @ p = p * q`` (quaternion product), (4, 4)."""
    w, x, y, z = q.tolist()
    return np.array([[w, -x, -y, -z], [x, w, z, -y], [y, -z, w, x], [z, y, -x, w]])


def rotation_between(start: FloatArray, end: FloatArray) -> FloatArray:
    """Rotation vector v, world axes, with ``end = exp(v) * start`` for unit quaternions (4,): (3,) [rad]."""
    conjugate = start * np.array([1.0, -1.0, -1.0, -1.0])
    difference = quaternion_right_matrix(conjugate) @ end
    w, vector = float(difference[0]), difference[1:]
    sine = math.sqrt(float(vector @ vector))
    if sine < 1e-12:
        return 2.0 * vector if w > 0 else -2.0 * vector
    angle = 2.0 * math.atan2(sine if w > 0 else -sine, abs(w))
    return angle / sine * vector


def matrix_from_quaternion(q: FloatArray) -> FloatArray:
    """Rotation matrix of a unit quaternion, (3, 3): body axes to world axes."""
    w, x, y, z = q.tolist()
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )


def quaternion_from_rpy(roll: float, pitch: float, yaw: float) -> FloatArray:
    """Unit quaternion of ``Rz(yaw) Ry(pitch) Rx(roll)`` (REP-103), (4,)."""
    cr, sr = math.cos(0.5 * roll), math.sin(0.5 * roll)
    cp, sp = math.cos(0.5 * pitch), math.sin(0.5 * pitch)
    cy, sy = math.cos(0.5 * yaw), math.sin(0.5 * yaw)
    return np.array(
        [
            cr * cp * cy + sr * sp * sy,
            sr * cp * cy - cr * sp * sy,
            cr * sp * cy + sr * cp * sy,
            cr * cp * sy - sr * sp * cy,
        ]
    )


def yaw_from_quaternion(q: FloatArray) -> float:
    """Yaw angle of ``Rz(yaw) Ry(pitch) Rx(roll)`` [rad]."""
    w, x, y, z = q.tolist()
    return math.atan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))


def quaternion_from_matrix(matrix: FloatArray) -> FloatArray:
    """Unit quaternion ``(w, x, y, z)`` of a rotation matrix, w >= 0 (Shepperd's method), (4,)."""
    (a, b, c), (d, e, f), (g, h, i) = matrix.tolist()
    squares = (1 + a + e + i, 1 + a - e - i, 1 - a + e - i, 1 - a - e + i)
    largest = squares.index(max(squares))
    rows = (
        (squares[0], h - f, c - g, d - b),
        (h - f, squares[1], d + b, c + g),
        (c - g, d + b, squares[2], h + f),
        (d - b, c + g, h + f, squares[3]),
    )
    q = np.array(rows[largest]) / (2.0 * math.sqrt(squares[largest]))
    return -q if q[0] < 0 else q
