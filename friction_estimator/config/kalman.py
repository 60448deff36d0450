"""The Kalman observer."""

from __future__ import annotations

from dataclasses import dataclass

from friction_estimator.config.validation import Validated, parameter


@dataclass(frozen=True, slots=True)
class KalmanConfig(Validated):
    """Calibrating Kalman filter of every limb."""

    window: float = parameter(0.01, "readings are gathered for this long before the filter uses them", "s", 1e-3, 1.0)
    jerk_densities: tuple[float, ...] = parameter(
        (0.1, 1.0, 10.0, 1e2, 1e3, 1e4, 1e5, 1e7, 1e9),
        "white jerk of the joint-motion filters that run side by side",
        "rad^2/s^5",
        1e-9,
        1e12,
    )
    acceleration_densities: tuple[float, ...] = parameter(
        (1e-5, 1e-4, 1e-3, 1e-2, 1e-1),
        "white acceleration of further filters, for joints that keep their velocity",
        "rad^2/s^3",
        1e-12,
        1e12,
    )
    motion_change_time: float = parameter(
        1.0, "mean time after which a joint moves in another way: another filter becomes the best", "s", 1e-3, 1e3
    )
    motion_memory: float = parameter(
        0.1,
        "time over which the smoother compares the joint-motion filters, before and after each sample",
        "s",
        1e-3,
        10.0,
    )
    law_walk: float = parameter(
        1e-4, "random walk of the law's parameters, relative to their prior: wear, temperature", "1/sqrt(s)", 0.0, 1.0
    )
    calibration_walk: float = parameter(
        5e-3, "random walk of the errors of model and sensors, relative to their prior", "1/sqrt(s)", 0.0, 1.0
    )
    mismatch_time: float = parameter(0.2, "correlation time of what the law misses", "s", 1e-3, 1e3)
    mismatch_std: float = parameter(0.1, "size of what the law misses, before it is adapted", "N m", 0.0, 1e3)
    mismatch_floor: float = parameter(0.01, "and at least", "N m", 0.0, 1e3)
    load_error: float = parameter(
        1e-3, "part of the motor torque that timing, elasticity and rounding spoil, for sigma only", "", 0.0, 1.0
    )
    mismatch_memory: float = parameter(3.0, "over which its size is adapted", "s", 1e-2, 1e4)
    link_mass_std: float = parameter(0.1, "relative error of each link's mass; 0: masses are right", "", 0.0, 1.0)
    link_com_std: float = parameter(0.005, "error of each link's centre of mass an axis; 0: right", "m", 0.0, 1.0)
    force_bias_std: float = parameter(
        2.0, "bias of the foot forces, unless sensors.force_bias_std is larger; 0 in both: none", "N", 0.0, 1e3
    )
    moment_bias_std: float = parameter(0.1, "bias of the foot moments, likewise", "N m", 0.0, 1e3)
    force_gain_std: float = parameter(0.01, "relative gain error of the foot sensors, likewise", "", 0.0, 1.0)
    effort_gain_std: float = parameter(0.01, "relative gain error of each motor torque, likewise", "", 0.0, 1.0)
    specific_force_bias_std: float = parameter(0.02, "bias of the accelerometer, likewise", "m/s^2", 0.0, 10.0)
    least_velocity: float = parameter(
        0.02,
        "a limb whose joints are all slower teaches nothing: the same equation over and over",
        "rad/s",
        0.0,
        10.0,
    )
    instant_std: float = parameter(
        0.2,
        "while the velocity leaves the friction of a standing leg's joint this uncertain, it is measured at once",
        "N m",
        0.0,
        1e6,
    )
    innovation_gate: float = parameter(
        2.5, "normalised innovation squared of one joint beyond which a window contains an impact", "", 1.0, 1e6
    )
    longest_blow: float = parameter(0.25, "impacts for longer than this mean that the law is wrong", "s", 0.0, 1e3)
    relearn_ratio: float = parameter(
        0.2, "part of the prior standard deviation that is then added to the uncertainty of the law", "", 0.0, 1.0
    )
    disturbance_gain: float = parameter(
        40.0, "bandwidth of the observer of external torques, pushes", "rad/s", 0.1, 1e4
    )
    disturbance_gate: float = parameter(5.0, "external torques beyond this many sigma are noticed", "", 1.0, 1e6)
    disturbance_ratio: float = parameter(
        3.0, "an external torque is a push beyond this many times the friction plus smallest_push", "", 0.1, 1e6
    )
    smallest_push: float = parameter(1.0, "external torques below this are never pushes", "N m", 0.0, 1e6)
    longest_push: float = parameter(0.5, "pushes for longer than this mean that the law is wrong", "s", 0.0, 1e3)
    push_settle: float = parameter(
        0.03, "for this long after a push the friction comes from the law alone", "s", 0.0, 10.0
    )
    change_time: float = parameter(
        0.025, "impacts of the same direction for this long mean that friction has changed", "s", 0.0, 1e3
    )
    change_ratio: float = parameter(
        0.5, "relative change of each parameter that is then added to its uncertainty", "", 0.0, 10.0
    )
