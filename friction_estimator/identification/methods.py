"""The identification methods by name: which recordings and robots each accepts, its options, and how it runs.

A new method is one module with ``accepts``, an options class and ``run``, and one entry in ``METHODS``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from friction_estimator.errors import InputError
from friction_estimator.identification.friction_curve import method as friction_curve
from friction_estimator.identification.inverse_dynamics import method as inverse_dynamics
from friction_estimator.identification.joint_log import JointLog, RobotDescription
from friction_estimator.identification.motor import method as motor
from friction_estimator.identification.recording.zero_phase import Progress
from friction_estimator.identification.result import Identification


class Accepts(Protocol):
    """Whether a method can be used with these logs and this robot, and the reason in a sentence."""

    def __call__(self, logs: Sequence[JointLog], robot: RobotDescription | None) -> tuple[bool, str]:  # noqa: D102
        ...


class Run(Protocol):
    """Identify; ``progress`` is called with finished and all steps, ``warn`` with each warning about the data."""

    def __call__(  # noqa: D102
        self,
        logs: Sequence[JointLog],
        robot: RobotDescription | None,
        options: Any = ...,
        progress: Progress | None = None,
        warn: Callable[[str], None] | None = None,
    ) -> Identification: ...


@dataclass(frozen=True, slots=True)
class IdentificationMethod:
    """One method.

    Attributes
    ----------
    name : the key in ``METHODS``
    options : class of its options, a frozen dataclass whose defaults are those of the method
    accepts : whether it can be used, and why
    run : logs, robot, options, progress and warnings to the result
    """

    name: str
    options: type
    accepts: Accepts
    run: Run


METHODS: dict[str, IdentificationMethod] = {
    method.name: method
    for method in (
        IdentificationMethod(motor.METHOD, motor.MotorOptions, motor.accepts, motor.run),
        IdentificationMethod(
            friction_curve.METHOD, friction_curve.FrictionCurveOptions, friction_curve.accepts, friction_curve.run
        ),
        IdentificationMethod(
            inverse_dynamics.METHOD,
            inverse_dynamics.InverseDynamicsOptions,
            inverse_dynamics.accepts,
            inverse_dynamics.run,
        ),
    )
}
"""All methods. The first one that accepts the logs and the robot is taken when the user names none."""


def choose_method(logs: Sequence[JointLog], robot: RobotDescription | None) -> tuple[str, str]:
    """Name of the first method that accepts the logs and the robot, and the reason in a sentence.

    Raises
    ------
    InputError
        When no method accepts them; the message has what each one needs.
    """
    answers = {name: method.accepts(logs, robot) for name, method in METHODS.items()}
    for name, (usable, reason) in answers.items():
        if usable:
            return name, f"method {name}: {reason}"
    needs = "; ".join(reason for _, reason in answers.values())
    raise InputError(f"{logs[0].name} with this robot allows no method: {needs}")
