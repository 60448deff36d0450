"""What is made of measured friction: laws, compensation, trust."""

from __future__ import annotations

from dataclasses import dataclass

from friction_estimator.config.validation import Validated, parameter


@dataclass(frozen=True, slots=True)
class IdentifierConfig(Validated):
    """Recursive least squares per joint (section 6, eqs. 57-67, Table II)."""

    law: str = parameter(
        "",
        "friction law of every joint, linear in its parameters; empty: six_slope_load for kalman, else coulomb_viscous",
    )
    joint_laws: tuple[str, ...] = parameter(
        (), "joints with another law: entries joint=law, the joint a name or a pattern such as *_knee"
    )
    phases: str = parameter(
        "stance",
        "stance: only joints of a standing limb adapt, as printed; all: whenever measured",
        choices=("stance", "all"),
    )
    initial_covariance: float = parameter(10.0, "P_RLS_0 of F_c and F_v, times the identity", "", 0.0, 1e6)
    outlier_gate: float = parameter(
        10.0, "errors of more than this many sigma are cut to that: a glitch then cannot spoil the law", "", 1.0, 1e6
    )
    forgetting: float = parameter(1.0, "forgetting factor a sample; 1 never forgets, as printed", "", 0.9, 1.0)
    residual_window: float = parameter(
        2000.0, "window of the residual variance behind the law's sigma", "samples", 2.0, 1e7
    )


@dataclass(frozen=True, slots=True)
class CompensationConfig(Validated):
    """Feed-forward torque that cancels the identified friction (section 7.4)."""

    enabled: bool = parameter(False, "publish friction_compensation: torque to add to the motor command")
    velocity: str = parameter(
        "measured",
        "velocity at which the law is asked; desired: free of noise and delay, but a resting or pushed joint gets none",
        choices=("measured", "desired"),
    )
    desired_topic: str = parameter("joint_commands", "topic of the sensor_msgs/JointState with desired velocities")
    gain: float = parameter(1.0, "part of the friction that is cancelled; may change at run time", "", 0.0, 1.0)
    limit: float = parameter(
        10.0, "largest torque of a joint; the effort limit of the URDF holds as well", "N m", 0.0, 1e9
    )
    fade_velocity: float = parameter(
        0.01,
        "from this speed down the torque fades to zero, against chatter; a measured velocity: from 3 sigma at least",
        "rad/s",
        0.0,
        100.0,
    )
    max_relative_sigma: float = parameter(
        1.0,
        "a joint whose law has a sigma above this part of its torque gets none; all of it below half of that",
        "",
        1e-6,
        1e6,
    )
    slew_rate: float = parameter(500.0, "fastest change of the torque", "N m/s", 1e-3, 1e12)
    timeout: float = parameter(
        0.1, "joint states or desired velocities silent for longer: zero torque", "s", 1e-3, 10.0
    )


@dataclass(frozen=True, slots=True)
class TrustConfig(Validated):
    """When an estimate should not be believed."""

    period: float = parameter(0.01, "time between the estimates that are judged", "s", 1e-4, 10.0)
    memory: float = parameter(10.0, "time constant over which the estimates are judged", "s", 0.1, 1e6)
    evidence: float = parameter(1.0, "a verdict needs samples of at least this duration", "s", 0.0, 1e3)
    slowest: float = parameter(
        0.02, "a joint moves above this speed, and above 3 sigma of a measured velocity", "rad/s", 0.0, 100.0
    )
    unlearned: float = parameter(
        0.5, "a law is unknown while every parameter's sigma is above this part of its prior", "", 0.0, 1.0
    )
    passivity_gate: float = parameter(
        3.0, "friction along the motion drives the joint beyond this many sigma", "", 0.0, 1e3
    )
    driving_share: float = parameter(0.05, "part of the moving time in which friction may drive", "", 0.0, 1.0)
    calibration_ratio: float = parameter(
        1.0, "errors of model and sensors may explain at most this multiple of the friction torque", "", 0.0, 1e6
    )
    known: float = parameter(
        0.3, "a law becomes the reference for drift once its sigma is below this part of its torque", "", 0.0, 1.0
    )
    drift_ratio: float = parameter(0.25, "part of its torque by which a law may change", "", 0.0, 1e3)
    drift_gate: float = parameter(
        1.0, "a change of the law counts as drift only beyond this many sigma of its torque", "", 0.0, 1e3
    )
    confidence: float = parameter(
        0.999, "probability below the upper end of the chi-square band of the mean innovation", "", 0.5, 0.999999
    )
    consistency_slack: float = parameter(1.15, "factor on the upper end of that band", "", 1.0, 1e3)
    largest_innovation: float = parameter(5.0, "larger innovations, of impacts, count as this many sigma", "", 1.0, 1e3)
    disturbed_share: float = parameter(0.1, "part of the time in which pushes may stop the learning", "", 0.0, 1.0)
