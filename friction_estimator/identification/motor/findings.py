"""The method `motor` in words: what was decided, and what to think of the result."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from friction_estimator.config.coupling import Coupling
from friction_estimator.identification.motor.law import SLOW_SAMPLES
from friction_estimator.identification.motor.result import MotorResult
from friction_estimator.identification.regression.verdict import Finding

_WEAK = 0.1
"""Share of Coulomb friction that an offset, and of the driving torque that an error, is worth a word."""
_SURE = 3.0
"""Standard deviations from zero."""


def motor_choices(results: Sequence[MotorResult], coupling: Coupling) -> tuple[str, ...]:
    """What the data decided, and what the numbers mean."""
    said = ["friction with PWM = 0 has the back EMF in its viscous part (Guedelha et al. 2017, eq. 17)"]
    for joints, motors in coupling.groups:
        if len(joints) > 1:
            said.append(
                f"{', '.join(joints)} are moved together by {', '.join(motors)}: their friction is given by the name "
                "of the motor, at the output of its gearbox"
            )
    if any(result.friction.offset_sigma == 0.0 for result in results):
        said.append(
            "free logs are taken to have no constant torque: one of the torque sensor or of an offset current would "
            "make friction of the two directions differ by twice its size"
        )
    for result in results:
        free = result.free
        slowest = np.abs(free.velocity[free.slides]).min(initial=np.inf)
        said.append(
            f"{free.motor}: {100 * free.slides.mean():.0f} % of the free samples slide, at {slowest:.2g} rad/s and "
            "more; the rest is standstill and its margins"
        )
    return tuple(said)


def motor_findings(result: MotorResult) -> list[Finding]:
    """What to think of one motor beyond its scores."""
    return [*_about_static_friction(result), *_about_offset(result), *_about_gain(result)]


def _about_static_friction(result: MotorResult) -> list[Finding]:
    friction, motor = result.friction, result.free.motor
    if not friction.law.is_stribeck:
        return []
    found = []
    scale, unseen = friction.law.stribeck_velocity, friction.law.no_static
    if unseen != "none":
        where = "positive and the negative" if unseen == "both" else unseen
        found.append(
            Finding(
                1.3,
                f"{motor}: fewer than {SLOW_SAMPLES} samples slide slower than {scale:.2g} rad/s in the {where} "
                "direction: static friction there is taken to be Coulomb friction; move it more slowly",
            )
        )
    p = len(friction.law.parameter_names)
    if friction.values.size - 1 > p:
        spread = float(np.sqrt(friction.covariance[p, p]))
        if not spread < 0.5 * friction.values[p]:
            found.append(
                Finding(
                    1.25,
                    f"{motor}: the Stribeck velocity {friction.values[p]:.2g} rad/s cannot be seen in this motion "
                    f"(sigma {spread:.2g}): take the printed one",
                )
            )
    return found


def _about_offset(result: MotorResult) -> list[Finding]:
    friction, gain = result.friction, result.gain
    if friction.offset_sigma == 0.0 and gain is not None:
        if abs(gain.offset) > _SURE * float(np.sqrt(gain.covariance[0, 0])):
            return [
                Finding(
                    1.15,
                    f"{result.free.motor}: a constant torque of {gain.offset:.2g} N m shows when it is driven; if it "
                    "acts with PWM = 0 too (torque sensor, offset current), friction of the directions differs by it",
                )
            ]
    elif gain is not None:
        difference = gain.offset - friction.offset
        spread = float(np.hypot(np.sqrt(gain.covariance[0, 0]), friction.offset_sigma))
        if abs(difference) > _SURE * spread and abs(difference) > _WEAK * float(np.abs(friction.values[0])):
            return [
                Finding(
                    0.8,
                    f"{result.free.motor}: the constant torque is {friction.offset:.2g} N m free and {gain.offset:.2g} "
                    "N m driven: an offset of the torque sensor that moves, or an offset current of the driver",
                )
            ]
    return []


def _about_gain(result: MotorResult) -> list[Finding]:
    gain, motor = result.gain, result.free.motor
    if gain is None:
        return []
    spread, unit = float(np.sqrt(gain.covariance[1, 1])), gain.fit.problem.units[1]
    if gain.gain < _SURE * spread:
        return [
            Finding(
                1.6,
                f"{motor}: the drive gain {gain.gain:.3g} +- {spread:.2g} {unit} is not above zero: sign or column of "
                f"the {gain.kind}, or it is driven too little",
            )
        ]
    error = 100.0 * gain.fit.relative_error
    return [
        Finding(
            0.2 + (gain.fit.relative_error > _WEAK),
            f"{motor}: {gain.kind} gives {gain.gain:.3g} +- {spread:.2g} {unit}, the torque of driven motion less "
            f"friction is met to {error:.1f} %",
        )
    ]
