"""What the options of `identify` may be: types for argparse, each with an error that says what it expects."""

from __future__ import annotations

import argparse
import math

import numpy as np

from friction_estimator.identification.joint_log import Payload

SEARCH = "search"
_POINT, _BODY = 4, 10
"""How many numbers say a payload: mass and centre of mass, and with the inertia."""


def positive(text: str) -> float:
    """Type of an option that is a positive number."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0.0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number")
    return value


def positive_or_search(text: str) -> float | str:
    """Type of ``--stribeck-velocity``: a positive number, or the word for a search."""
    return text if text == SEARCH else positive(text)


def folds(text: str) -> int:
    """Type of ``--folds``."""
    if not text.isdecimal() or int(text) < 2:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of folds: a whole number from 2 on")
    return int(text)


def regressors_of(text: str) -> tuple[bool, tuple[float, ...]]:
    """Type of ``--regressors``: whether friction depends on temperature, and multiples of the position."""
    temperature, harmonics = False, []
    for word in names_of(text):
        name, star, multiple = word.partition("*")
        if word == "temperature":
            temperature = True
        elif name == "position":
            harmonics.append(positive(multiple) if star else 1.0)
        else:
            raise argparse.ArgumentTypeError(f"{word!r} is no regressor; there are 'temperature' and 'position[*K]'")
    return temperature, tuple(harmonics)


def payload_of(text: str) -> tuple[str, Payload]:
    """Type of ``--payload``: ``EXPERIMENT=FRAME:MASS,X,Y,Z[,IXX,IYY,IZZ,IXY,IXZ,IYZ]``, without inertia a point."""
    experiment, equals, body = text.rpartition("=")
    frame, colon, numbers = body.rpartition(":")
    try:
        values = [float(number) for number in numbers.split(",")]
    except ValueError:
        values = []
    if not (equals and experiment and colon and frame) or len(values) not in (_POINT, _BODY):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not of the form EXPERIMENT=FRAME:MASS,X,Y,Z or "
            "EXPERIMENT=FRAME:MASS,X,Y,Z,IXX,IYY,IZZ,IXY,IXZ,IYZ"
        )
    if not np.isfinite(values).all() or values[0] < 0.0:
        raise argparse.ArgumentTypeError(f"{text!r}: the mass cannot be negative, and every number must be finite")
    xx, yy, zz, xy, xz, yz = values[_POINT:] or [0.0] * (_BODY - _POINT)
    inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    if np.linalg.eigvalsh(inertia).min() < 0.0:
        raise argparse.ArgumentTypeError(f"{text!r}: no body has such an inertia, it must be positive semidefinite")
    return experiment, Payload(frame, values[0], np.array(values[1:_POINT]), inertia)


def names_of(text: str) -> tuple[str, ...]:
    """Type of an option that takes names separated by commas."""
    names = tuple(name.strip() for name in text.split(","))
    if not all(names) or len(set(names)) != len(names):
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of different names separated by commas")
    return names


def motor_value(text: str) -> tuple[str, float]:
    """Type of an option ``MOTOR=NUMBER``."""
    motor, equals, number = text.rpartition("=")
    try:
        value = float(number)
    except ValueError:
        value = math.nan
    if not (equals and motor.strip()) or not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form MOTOR=NUMBER")
    return motor.strip(), value
