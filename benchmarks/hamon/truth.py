"""What the motor of the simulated joint has to give, quadrant by quadrant (Hamon et al. 2010, eqs. 25 and 42)."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp

from friction_estimator.types import GRAVITY

ARM_LENGTH = 1.277
"""L_a, from the joint to the payload [m]."""


@dataclass(frozen=True)
class Quadrant:
    """Products of eq. 43 of one sign of the power; what fades does so with exp(-|dq| / q_s).

    Attributes
    ----------
    inertia, inertia_fading : a J, b J [kg m^2]
    moment, moment_fading : a M X, b M X [kg m]
    payload, payload_fading : a, b: what the payload's torque counts
    dry : c [N m]
    """

    inertia: float
    inertia_fading: float
    moment: float
    moment_fading: float
    payload: float
    payload_fading: float
    dry: float

    def inertia_and_weight(self, mass: float, cosine: float, fading: float) -> tuple[float, float]:
        """Torque for one rad/s^2 [kg m^2] and against gravity [N m], with a payload of this mass [kg]."""
        carried = (self.payload + self.payload_fading * fading) * mass * ARM_LENGTH
        inertia = self.inertia + self.inertia_fading * fading + carried * ARM_LENGTH
        return inertia, (self.moment + self.moment_fading * fading + carried) * GRAVITY * cosine


@dataclass(frozen=True)
class Truth:
    """A joint: both quadrants, F_V [N m s/rad], tau_off [N m] and q_s [rad/s]."""

    motor: Quadrant
    generator: Quadrant
    viscous: float = 48.139
    offset: float = 9.950
    stribeck_velocity: float = 0.03

    def acceleration(
        self, torque: float, cosine: float, velocity: float, direction: float, mass: float
    ) -> tuple[float, float]:
        """Acceleration of the joint that slides in a direction, and the load's share of the motor torque.

        Between the dry frictions of both quadrants nothing gets through, and the arm falls freely.
        """
        fading = exp(-abs(velocity) / self.stribeck_velocity)
        rest = torque - self.viscous * velocity - self.offset
        quadrant = self.motor
        load = rest - quadrant.dry * direction
        if load * direction < 0.0:
            quadrant = self.generator
            load = min((rest - quadrant.dry * direction) * direction, 0.0) * direction
        inertia, weight = quadrant.inertia_and_weight(mass, cosine, fading)
        return (load - weight) / inertia, load


AS_PRINTED = Truth(
    Quadrant(32.420, 0.0, 22.204, 1.621, 0.942, 0.240, 21.152),
    Quadrant(29.294, 0.0, 19.432, -1.798, 0.915, -0.266, 15.588),
)
"""Table II. The products contradict each other: a_m / a_g is 1.11 for J, 1.14 for M X, 1.03 for the payload."""


def shared_factors(
    inertia: float = 30.9,
    moment: float = 20.82,
    motor: tuple[float, float] = (1.067, 0.15),
    generator: tuple[float, float] = (0.933, -0.17),
) -> Truth:
    """The nearest joint that can be: one J, one M X and one pair of factors (a, b) a quadrant."""
    quadrants = (
        Quadrant(a * inertia, b * inertia, a * moment, b * moment, a, b, dry)
        for (a, b), dry in ((motor, AS_PRINTED.motor.dry), (generator, AS_PRINTED.generator.dry))
    )
    return Truth(*quadrants)
