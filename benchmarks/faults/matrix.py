"""The table of stream faults: what happens to the messages, and what the estimator must do about it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from benchmarks.faults import scenes, streams
from benchmarks.faults.readings import Walk
from benchmarks.faults.streams import ALL, DEGREES, G_UNIT, IMU, JOINTS, WRENCHES, Change, quarter_turn

DRIVERS = ("Estimator", "replay", "node")
_MESSAGES = ("replay", "node")
_LIVE = ("node",)
SAME = 2.0
"""Largest RMS error in a fault that the estimator bridges, as a multiple of the error before it."""
RECOVERY = 2.0
"""Good data after which the error is as before the fault [s]."""
_WRONG = 5.0
"""Duration of faults whose data are plausible but wrong: sensors must be compared with each other to find them [s]."""
_LEARNED = 5.0
"""Good data after which the error is as before such a fault, whose data were learned from [s]."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One row of the table.

    Attributes
    ----------
    name, what : for the command line and the table
    change : of the messages
    status : status of /diagnostics that shows the fault; empty: no status needs to, and ``sensors`` has no error
    level : that this status must reach, ``WARN`` or ``ERROR``
    words : that its text contains, in any case of letters: the sensor, joint, topic or parameter
    friction : ``estimated``: every estimate and its sigma are finite; ``NaN``: the documented value of joints without
        efforts; ``none``: there need not be an estimate
    error : largest RMS error in the fault, as a multiple of that before it; inf: the status must warn instead
    recovery : good data after which the error is as before [s]
    drivers : that run this row
    seconds : duration of the fault
    """

    name: str
    what: str
    change: Change
    status: str = ""
    level: str = "WARN"
    words: tuple[str, ...] = ()
    friction: str = "estimated"
    error: float = SAME
    recovery: float = RECOVERY
    drivers: tuple[str, ...] = DRIVERS
    seconds: float = 2.5


KNEE = 3
"""Index of the left knee, which the faults of one joint hit."""


def stream_faults(walk: Walk) -> dict[str, Fault]:
    """All rows by name, for the robot of this walk."""
    joint_names = walk.joint_names
    knee = joint_names[KNEE]
    sensors, wrong = "sensors", math.inf
    joint_states, imu = "input joint_states", "input imu/data"
    rows = [
        Fault("loss", "every message is lost with 10 % probability", streams.loss(0.10)),
        Fault("loss_half", "every message is lost with 50 % probability", streams.loss(0.5)),
        Fault("bursts", "12 bursts of up to 60 ms without any message", streams.bursts(12, 0.060)),
        Fault("stalls", "all messages of 50 ms arrive together, four times a second", streams.stalls(0.050, 0.25)),
        Fault("duplicates", "every third message comes twice", streams.duplicates(0.33)),
        Fault("reordered", "messages are up to 4 ms late and overtake each other", streams.jitter(0.004)),
        Fault(
            "reordered_imu",
            "IMU messages are up to 30 ms late and overtake each other",
            streams.jitter(0.030, IMU),
        ),
        Fault("clock_forward", "all stamps jump an hour ahead", streams.clock_jump(3600.0005), error=wrong),
        Fault("clock_back", "all stamps jump back by five seconds", streams.clock_jump(-5.0005), error=wrong),
        Fault(
            "clock_each_sample",
            "the stamps of every second instant are an hour ahead",
            streams.clock_in_each_sample(3600.0005),
            sensors,
            words=("stamp",),
            friction="none",
            error=wrong,
        ),
        Fault(
            "looped",
            "one second is played again and again with its stamps, as from a looped bag",
            streams.loop(1.0),
            error=wrong,
        ),
        Fault(
            "joint_order",
            "joints come in another order in every message",
            streams.order(joint_names),
            drivers=_MESSAGES,
        ),
        Fault(
            "joint_missing",
            "joint states lack the left knee",
            streams.without_joint(joint_names, knee),
            joint_states,
            "ERROR",
            (knee,),
            "none",
            drivers=_MESSAGES,
        ),
        Fault(
            "no_efforts",
            "joint states carry no efforts",
            streams.no_efforts(),
            sensors,
            words=("effort",),
            friction="NaN",
        ),
        Fault(
            "torque_saturated",
            "torques are cut to 20 N m",
            streams.clipped(20.0),
            "friction diagnosis",
            words=(knee,),
            error=wrong,
            recovery=_LEARNED,
            seconds=_WRONG,
        ),
        Fault(
            "torque_constant",
            "the torque of the left knee keeps its value",
            streams.stuck(JOINTS, "effort", joint=KNEE),
            sensors,
            words=("effort", knee),
            error=wrong,
            recovery=_LEARNED,
            seconds=_WRONG,
        ),
        Fault(
            "torques_constant",
            "all torques keep their values",
            streams.stuck(JOINTS, "effort"),
            sensors,
            words=("effort",),
            error=wrong,
            recovery=_LEARNED,
            seconds=_WRONG,
        ),
        Fault(
            "imu_g",
            "the IMU reports the specific force in g",
            streams.scale(IMU, G_UNIT, "specific_force"),
            sensors,
            words=("imu",),
            error=wrong,
            recovery=_LEARNED,
            seconds=_WRONG,
        ),
        Fault(
            "imu_degrees",
            "the IMU reports degrees per second",
            streams.scale(IMU, DEGREES, "angular_velocity"),
            sensors,
            words=("imu",),
            error=wrong,
            recovery=_LEARNED,
            seconds=_WRONG,
        ),
        Fault(
            "joints_degrees",
            "joint positions and velocities are in degrees",
            streams.scale(JOINTS, DEGREES, "position", "velocity"),
            joint_states,
            "ERROR",
            ("position",),
            "none",
            wrong,
            recovery=_LEARNED,
        ),
        Fault(
            "wrench_kilonewton",
            "wrenches are in kN and kN m",
            streams.scale(WRENCHES, 1e-3, "wrench"),
            sensors,
            words=("foot",),
            error=wrong,
            recovery=_LEARNED,
            seconds=_WRONG,
        ),
        Fault(
            "imu_turned_x",
            "the IMU is turned by 90 degrees about x",
            streams.turn(IMU, quarter_turn(0)),
            sensors,
            words=("imu",),
            error=wrong,
            recovery=_LEARNED,
            seconds=_WRONG,
        ),
        Fault(
            "imu_turned_z",
            "the IMU is turned by 90 degrees about z",
            streams.turn(IMU, quarter_turn(2)),
            sensors,
            words=("imu",),
            error=wrong,
            recovery=_LEARNED,
            seconds=_WRONG,
        ),
        Fault(
            "wrench_turned",
            "the force sensors are turned by 90 degrees about x",
            streams.turn(WRENCHES, quarter_turn(0)),
            sensors,
            words=("foot",),
            error=wrong,
            recovery=_LEARNED,
            seconds=_WRONG,
        ),
        Fault(
            "wrench_flipped",
            "the force sensors report the force of the foot on the ground",
            streams.scale(WRENCHES, -1.0, "wrench"),
            sensors,
            words=("flip", "l_foot"),
            error=wrong,
            recovery=_LEARNED,
            seconds=_WRONG,
        ),
        Fault(
            "torque_flipped",
            "all torques have the opposite sign",
            streams.scale(JOINTS, -1.0, "effort"),
            "friction diagnosis",
            words=(knee,),
            error=wrong,
            recovery=_LEARNED,
            seconds=_WRONG,
        ),
        Fault(
            "torque_flipped_knee",
            "the torque of the left knee has the opposite sign",
            streams.scale(JOINTS, -1.0, "effort", joint=KNEE),
            "friction diagnosis",
            words=(knee,),
            error=wrong,
            recovery=_LEARNED,
            seconds=_WRONG,
        ),
        Fault(
            "imu_late",
            "IMU messages arrive 10 ms late",
            streams.lag(0.010, IMU),
            sensors,
            words=("imu", "late"),
            error=wrong,
        ),
        Fault(
            "imu_stamp_lag",
            "stamps of the IMU are 10 ms too old",
            streams.stamp_lag(0.010, IMU),
            sensors,
            words=("imu", "late"),
            error=wrong,
        ),
        Fault(
            "wrench_late",
            "wrenches arrive 10 ms late",
            streams.lag(0.010, WRENCHES),
            sensors,
            words=("foot", "late"),
            error=wrong,
        ),
        Fault(
            "wrench_stamp_lag",
            "stamps of the wrenches are 10 ms too old",
            streams.stamp_lag(0.010, WRENCHES),
            sensors,
            words=("foot", "late"),
            error=wrong,
        ),
        Fault(
            "imu_stuck",
            "the IMU keeps its values under new stamps",
            streams.stuck(IMU, "angular_velocity", "specific_force"),
            sensors,
            words=("imu",),
            error=wrong,
            recovery=_LEARNED,
            seconds=_WRONG,
        ),
        Fault(
            "wrench_stuck",
            "the left force sensor keeps its values",
            streams.stuck(WRENCHES, "wrench", foot=0),
            sensors,
            words=("l_foot",),
            error=wrong,
            recovery=_LEARNED,
            seconds=_WRONG,
        ),
        Fault(
            "joints_stuck",
            "joint states keep positions and velocities",
            streams.stuck(JOINTS, "position", "velocity"),
            sensors,
            words=("joint",),
            error=wrong,
            recovery=_LEARNED,
            seconds=_WRONG,
        ),
        Fault(
            "encoder_stuck",
            "the left knee keeps position and velocity",
            streams.stuck(JOINTS, "position", "velocity", joint=KNEE),
            sensors,
            words=(knee,),
            error=wrong,
            recovery=_LEARNED,
            seconds=_WRONG,
        ),
        Fault("imu_silent", "no IMU", streams.silent(IMU), sensors, words=("imu",), error=wrong),
        Fault(
            "wrench_silent",
            "no left force sensor",
            streams.silent(WRENCHES, 0),
            sensors,
            words=("l_foot",),
            error=wrong,
        ),
        Fault(
            "wrenches_silent",
            "no force sensor",
            streams.silent(WRENCHES),
            sensors,
            words=("l_foot", "r_foot"),
            error=wrong,
        ),
        Fault(
            "joints_silent",
            "no joint states",
            streams.silent(JOINTS),
            joint_states,
            words=("no message",),
            friction="none",
            drivers=_LIVE,
        ),
        Fault(
            "all_silent",
            "no message of any sensor",
            streams.silent(ALL),
            joint_states,
            words=("no message",),
            friction="none",
            drivers=_LIVE,
        ),
        Fault(
            "position_nan",
            "the position of the left knee is NaN",
            streams.outliers(JOINTS, "position", KNEE, math.nan),
            joint_states,
            "ERROR",
            ("position", knee),
            "none",
        ),
        Fault(
            "effort_nan",
            "the effort of the left knee is NaN",
            streams.outliers(JOINTS, "effort", KNEE, math.nan),
            joint_states,
            "ERROR",
            ("effort", knee),
            "none",
        ),
        Fault(
            "velocity_inf",
            "the velocity of the left knee is infinite",
            streams.outliers(JOINTS, "velocity", KNEE, math.inf),
            joint_states,
            "ERROR",
            ("velocity", knee),
            "none",
        ),
        Fault(
            "imu_nan",
            "the angular velocity about y is NaN",
            streams.outliers(IMU, "angular_velocity", 1, math.nan),
            imu,
            "ERROR",
            ("angular",),
            error=wrong,
        ),
        Fault(
            "wrench_inf",
            "the vertical force of the left foot is infinite",
            streams.outliers(WRENCHES, "wrench", 2, math.inf, foot=0),
            "input l_foot/wrench",
            "ERROR",
            ("wrench",),
            error=wrong,
        ),
        Fault(
            "position_1e100",
            "one position of the left knee is 1e100 rad",
            streams.outliers(JOINTS, "position", KNEE, 1e100, 1),
            joint_states,
            "ERROR",
            ("position", knee),
        ),
        Fault(
            "position_1e3",
            "ten positions of the left knee are 1000 rad",
            streams.outliers(JOINTS, "position", KNEE, 1e3, 10),
            joint_states,
            "ERROR",
            ("position", knee),
        ),
        Fault(
            "velocity_90",
            "ten velocities of the left knee are 90 rad/s",
            streams.outliers(JOINTS, "velocity", KNEE, 90.0, 10),
            error=wrong,
        ),
        Fault(
            "effort_900",
            "ten efforts of the left knee are 900 N m",
            streams.outliers(JOINTS, "effort", KNEE, 900.0, 10),
            error=wrong,
        ),
        Fault(
            "wrench_1e100",
            "one vertical force of the left foot is 1e100 N",
            streams.outliers(WRENCHES, "wrench", 2, 1e100, 1, foot=0),
            "input l_foot/wrench",
            "ERROR",
            ("l_foot",),
        ),
        Fault(
            "imu_1e100",
            "one specific force is 1e100 m/s^2",
            streams.outliers(IMU, "specific_force", 2, 1e100, 1),
            imu,
            "ERROR",
            ("specific force",),
        ),
        Fault(
            "rate_25",
            "all sensors deliver at 25 Hz",
            streams.rate(25.0),
            sensors,
            words=("joint_states", "25 Hz"),
            error=wrong,
            seconds=4.0,
        ),
        Fault(
            "rate_10",
            "all sensors deliver at 10 Hz",
            streams.rate(10.0),
            sensors,
            words=("joint_states", "10 Hz"),
            error=wrong,
            seconds=4.0,
        ),
        Fault(
            "rate_1",
            "all sensors deliver at 1 Hz",
            streams.rate(1.0),
            sensors,
            words=("restarted",),
            friction="none",
            error=wrong,
            seconds=4.0,
        ),
        Fault("imu_50", "the IMU delivers at 50 Hz", streams.rate(50.0, IMU), error=wrong),
        Fault(
            "hanging",
            "the robot is lifted off the ground and moves its legs",
            scenes.hanging(walk),
            error=wrong,
            seconds=3.0,
        ),
        Fault("fallen", "the robot lies on its back and moves its legs", scenes.fallen(walk), error=wrong, seconds=3.0),
        Fault(
            "standing", "the robot suddenly stands still on both feet", scenes.standing(walk), error=wrong, seconds=3.0
        ),
    ]
    return {row.name: row for row in rows}
