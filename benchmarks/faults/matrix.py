"""The table of stream faults: what happens to the messages, and what the estimator must do about it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.faults import scenes, streams
from benchmarks.faults.readings import Walk
from benchmarks.faults.streams import (
    ALL,
    DEGREES,
    G_UNIT,
    IMU,
    JOINTS,
    WRENCHES,
    Change,
    each,
    lag,
    outliers,
    quarter_turn,
    rate,
    same_stamp,
    scale,
    silent,
    stamp_lag,
    stuck,
    turn,
)

DRIVERS = ("Estimator", "replay", "node")
_MESSAGES = ("replay", "node")
_LIVE = ("node",)
SAME = 2.0
"""Largest RMS error in a fault that the estimator bridges, as a multiple of the error before it."""
RECOVERY = 2.0
"""Good data after which the error is as before the fault [s]."""
_WRONG, _LEARNED = 5.0, 5.0
"""Duration of faults whose data are plausible but wrong, so that sensors must be compared with each other to find them,
and good data after which the error is as before such a fault, whose data were learned from [s]."""


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
    error : largest RMS error in the fault, as a multiple of that before it; inf: any, as a status warns or sigma grows
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


Wrong = list[str]


@dataclass(frozen=True, slots=True)
class ProcessFault:
    """One row of the table of faults of process, files and middleware.

    Attributes
    ----------
    name, what, expected : for the command line and the table
    run : with the walk and a folder; what was not as expected
    """

    name: str
    what: str
    expected: str
    run: Callable[[Walk, Path], Wrong]


KNEE = 3
"""Index of the left knee, which the faults of one joint hit."""


Row = tuple[str, str, Change, str]
"""Name, what happens, change, and words of a fault, separated by a comma."""


def _faults(rows: Sequence[Row], **common: Any) -> list[Fault]:
    """Faults with the same expectations."""
    return [
        Fault(name, what, change, words=tuple(words.split(", ")) if words else (), **common)
        for name, what, change, words in rows
    ]


def stream_faults(walk: Walk) -> dict[str, Fault]:
    """All rows by name, for the robot of this walk."""
    knee = walk.joint_names[KNEE]
    rows = [*_bridged(walk), *_named(), *_learned(walk), *_refused(walk.joint_names, knee)]
    return {row.name: row for row in rows}


def _bridged(walk: Walk) -> list[Fault]:
    """Messages that are lost, late, repeated or absurd for a moment, and a robot that does not walk: no status."""
    velocity, effort = outliers(JOINTS, "velocity", KNEE, 90.0, 10), outliers(JOINTS, "effort", KNEE, 900.0, 10)
    looped = "one second is played again and again with its stamps, as from a looped bag"
    as_before: list[Row] = [
        ("loss", "every message is lost with 10 % probability", streams.loss(0.10), ""),
        ("loss_half", "every message is lost with 50 % probability", streams.loss(0.5), ""),
        ("bursts", "12 bursts of up to 60 ms without any message", streams.bursts(12, 0.060), ""),
        ("stalls", "all messages of 50 ms arrive together, four times a second", streams.stalls(0.050, 0.25), ""),
        ("duplicates", "every third message comes twice", streams.duplicates(0.33), ""),
        ("reordered", "messages are up to 4 ms late and overtake each other", streams.jitter(0.004), ""),
        ("efforts_apart", "efforts come in a second message of the same stamp", streams.efforts_apart(), ""),
        ("old_messages", "a joint state of long ago comes again, twice a second", streams.old_messages(0.6), ""),
        ("encoder_turn", "the encoder of the left knee counts a turn more", streams.turned_on(KNEE), ""),
        ("reordered_imu", "IMU messages are up to 30 ms late and overtake each other", streams.jitter(0.03, IMU), ""),
    ]
    larger: list[Row] = [
        ("clock_forward", "all stamps jump an hour ahead", streams.clock_jump(3600.0005), ""),
        ("clock_back", "all stamps jump back by five seconds", streams.clock_jump(-5.0005), ""),
        ("looped", looped, streams.loop(1.0), ""),
        ("velocity_90", "ten velocities of the left knee are 90 rad/s", velocity, ""),
        ("effort_900", "ten efforts of the left knee are 900 N m", effort, ""),
        ("imu_50", "the IMU delivers at 50 Hz", rate(50.0, IMU), ""),
    ]
    others: list[Row] = [
        ("hanging", "the robot is lifted off the ground and moves its legs", scenes.hanging(walk), ""),
        ("fallen", "the robot lies on its back and moves its legs", scenes.fallen(walk), ""),
        ("standing", "the robot suddenly stands still on both feet", scenes.standing(walk), ""),
    ]
    order: Row = "joint_order", "joints come in another order in every message", streams.order(walk.joint_names), ""
    return [
        *_faults(as_before),
        *_faults([order], drivers=_MESSAGES),
        *_faults(larger, error=math.inf),
        *_faults(others, error=math.inf, seconds=3.0),
    ]


def _named() -> list[Fault]:
    """Readings that are missing, slow, or late: the status ``sensors`` names them."""
    late: list[Row] = [
        ("imu_late", "IMU messages arrive 10 ms late", lag(0.010, IMU), "imu, late"),
        ("imu_stamp_lag", "stamps of the IMU are 10 ms too old", stamp_lag(0.010, IMU), "imu, late"),
        ("wrench_late", "wrenches arrive 10 ms late", lag(0.010, WRENCHES), "foot, late"),
        ("wrench_stamp_lag", "stamps of the wrenches are 10 ms too old", stamp_lag(0.010, WRENCHES), "foot, late"),
        ("imu_silent", "no IMU", silent(IMU), "imu"),
        ("wrench_silent", "no left force sensor", silent(WRENCHES, 0), "l_foot"),
        ("wrenches_silent", "no force sensor", silent(WRENCHES), "l_foot, r_foot"),
    ]
    slow: list[Row] = [
        (f"rate_{hertz}", f"all sensors deliver at {hertz} Hz", rate(float(hertz)), f"joint_states, {hertz} Hz")
        for hertz in (25, 10)
    ]
    second, zeros = streams.second_publisher, "a second node sends zeros"
    publishers: list[Row] = [
        (
            "publishers",
            f"{zeros} after every fifth joint state",
            second(JOINTS, streams.zeros, 5, 4e-4),
            "second node",
        ),
        (
            "publishers_all",
            f"{zeros} with every stamp",
            second(JOINTS, streams.zeros, 1, 0.0, first=True),
            "second node",
        ),
        (
            "publishers_imu",
            "a second IMU with other axes",
            second(IMU, streams.other_axes, 1, 3e-4),
            "second publisher on imu/data",
        ),
        (
            "publishers_imu_same",
            "a second IMU with other axes and the same stamps",
            second(IMU, streams.other_axes, 1, 0.0),
            "second publisher on imu/data",
        ),
        (
            "publishers_wrench",
            f"{zeros} after every fifth wrench",
            second(WRENCHES, streams.zeros, 5, 4e-4),
            "second publisher on l_foot/wrench",
        ),
    ]
    stamps: list[Row] = [
        ("packets_imu", "the IMU comes in packets of 5", streams.packets(5, IMU), "imu/data, packets of 5"),
        (
            "packets_joints",
            "joint states come in packets of 3",
            streams.packets(3, JOINTS),
            "joint_states, packets of 3",
        ),
        ("packets_all", "all sensors come in packets of 4", streams.packets(4, ALL), "imu/data, packets of 4"),
    ]
    long: Row = "packets_long", "the IMU comes in packets of 20", streams.packets(20, IMU), "imu/data, too long"
    unread: Row = "joints_zero", "all joint states are zero", each(JOINTS, streams.zeros), "all joints are zero"
    passed_on: Row = (
        "publishers_effort",
        "a second node passes joint states on without torque",
        second(JOINTS, streams.no_torque, 1, 4e-4),
        "second publisher on joint_states",
    )
    one: Row = "rate_1", "all sensors deliver at 1 Hz", rate(1.0), "restarted"
    never_set = "imu_stamps_zero", "stamps of the IMU are never set", same_stamp(IMU, 0), "imu, do not advance"
    standing: Row = "stamps_standing", "all stamps stand still", same_stamp(ALL), "stamp"
    jumps = "the stamps of every second instant are an hour ahead"
    clock: Row = "clock_each_sample", jumps, streams.clock_in_each_sample(3600.0005), "stamp"
    efforts: Row = "no_efforts", "joint states carry no efforts", streams.no_efforts(), "effort"
    return [
        *_faults([*late, never_set], status="sensors", error=math.inf),
        *_faults([standing], status="sensors", error=math.inf, friction="none"),
        *_faults([*publishers, *stamps], status="sensors"),
        *_faults([long], status="sensors", error=math.inf),
        *_faults([unread], status="sensors", error=math.inf, friction="none"),
        *_faults([passed_on], status="sensors", error=math.inf, recovery=_LEARNED),
        *_faults(slow, status="sensors", error=math.inf, seconds=4.0),
        *_faults([one], status="sensors", error=math.inf, friction="none", seconds=4.0),
        *_faults([clock], status="sensors", error=math.inf, friction="none"),
        *_faults([efforts], status="sensors", friction="NaN"),
    ]


def _learned(walk: Walk) -> list[Fault]:
    """Readings that are wrong but plausible, so that the filters learn from them: a status names sensor or joint."""
    knee, imu = walk.joint_names[KNEE], ("angular_velocity", "specific_force")
    flipped = "the force sensors report the force of the foot on the ground"
    torque = "the torque of the left knee has the opposite sign"
    sensors: list[Row] = [
        (
            "torque_constant",
            "the torque of the left knee keeps its value",
            stuck(JOINTS, "effort", joint=KNEE),
            f"effort, {knee}",
        ),
        ("torques_constant", "all torques keep their values", stuck(JOINTS, "effort"), "effort"),
        ("imu_g", "the IMU reports the specific force in g", scale(IMU, G_UNIT, "specific_force"), "imu"),
        ("imu_degrees", "the IMU reports degrees per second", scale(IMU, DEGREES, "angular_velocity"), "imu"),
        ("wrench_kilonewton", "wrenches are in kN and kN m", scale(WRENCHES, 1e-3, "wrench"), "foot"),
        ("imu_turned_x", "the IMU is turned by 90 degrees about x", turn(IMU, quarter_turn(0)), "imu"),
        ("imu_turned_z", "the IMU is turned by 90 degrees about z", turn(IMU, quarter_turn(2)), "imu"),
        (
            "wrench_turned",
            "the force sensors are turned by 90 degrees about x",
            turn(WRENCHES, quarter_turn(0)),
            "foot",
        ),
        ("wrench_flipped", flipped, scale(WRENCHES, -1.0, "wrench"), "flip, l_foot"),
        ("wrench_point_2", "moments of the wrenches are about a point 2 cm ahead", streams.about(0.02), "foot, point"),
        ("wrench_point_4", "moments of the wrenches are about a point 4 cm ahead", streams.about(0.04), "foot, point"),
        (
            "wrench_tared",
            "the force sensors have been set to zero while the robot stood",
            scenes.tared(walk),
            "foot, offset",
        ),
        ("effort_gravity", "efforts lack the torque of gravity", scenes.lacking(walk, False), "effort, gravity"),
        (
            "effort_net",
            "efforts lack the torque of gravity and foot forces",
            scenes.lacking(walk, True),
            "effort, gravity and foot forces",
        ),
        ("imu_stuck", "the IMU keeps its values under new stamps", stuck(IMU, *imu), "imu"),
        ("wrench_stuck", "the left force sensor keeps its values", stuck(WRENCHES, "wrench", foot=0), "l_foot"),
        ("joints_stuck", "joint states keep positions and velocities", stuck(JOINTS, "position", "velocity"), "joint"),
        (
            "encoder_stuck",
            "the left knee keeps position and velocity",
            stuck(JOINTS, "position", "velocity", joint=KNEE),
            knee,
        ),
    ]
    joints: list[Row] = [
        ("torque_flipped", "all torques have the opposite sign", scale(JOINTS, -1.0, "effort"), knee),
        ("torque_flipped_knee", torque, scale(JOINTS, -1.0, "effort", joint=KNEE), knee),
    ]
    learned: list[Row] = [
        ("torque_saturated", "torques are cut to 20 N m", streams.clipped(20.0), ""),
        ("brake", "a brake drags at the left knee, 12 N m more friction", streams.brake(KNEE, 12.0), ""),
    ]
    expected = {"error": math.inf, "recovery": _LEARNED, "seconds": _WRONG}
    return [
        *_faults(sensors, status="sensors", **expected),
        *_faults(joints, status="friction diagnosis", **expected),
        *_faults(learned, **expected),
    ]


def _refused(names: Sequence[str], knee: str) -> list[Fault]:
    """Messages that cannot be used: the status of their topic is an error."""
    degrees, missing = scale(JOINTS, DEGREES, "position", "velocity"), streams.without_joint(names, knee)
    lost: list[Row] = [
        (
            f"{field}_{value}",
            f"the {field} of the left knee is {text}",
            outliers(JOINTS, field, KNEE, value),
            f"{field}, {knee}",
        )
        for field, value, text in (
            ("position", math.nan, "NaN"),
            ("effort", math.nan, "NaN"),
            ("velocity", math.inf, "infinite"),
        )
    ]
    far: list[Row] = [
        (
            "position_1e100",
            "one position of the left knee is 1e100 rad",
            outliers(JOINTS, "position", KNEE, 1e100, 1),
            f"position, {knee}",
        ),
        (
            "position_1e3",
            "ten positions of the left knee are 1000 rad",
            outliers(JOINTS, "position", KNEE, 1e3, 10),
            f"position, {knee}",
        ),
    ]
    turned: Row = "joints_degrees", "joint positions and velocities are in degrees", degrees, "position"
    joint: Row = "joint_missing", "joint states lack the left knee", missing, knee
    silence: list[Row] = [
        ("joints_silent", "no joint states", silent(JOINTS), "no message"),
        ("all_silent", "no message of any sensor", silent(ALL), "no message"),
    ]
    gyroscope: Row = (
        "imu_nan",
        "the angular velocity about y is NaN",
        outliers(IMU, "angular_velocity", 1, math.nan),
        "angular",
    )
    one_force: Row = (
        "imu_1e100",
        "one specific force is 1e100 m/s^2",
        outliers(IMU, "specific_force", 2, 1e100, 1),
        "specific force",
    )
    infinite, large = (
        outliers(WRENCHES, "wrench", 2, math.inf, foot=0),
        outliers(WRENCHES, "wrench", 2, 1e100, 1, foot=0),
    )
    force: Row = "wrench_inf", "the vertical force of the left foot is infinite", infinite, "wrench"
    one_wrench: Row = "wrench_1e100", "one vertical force of the left foot is 1e100 N", large, "l_foot"
    joint_states, imu, foot = (
        {"status": f"input {topic}", "level": "ERROR"} for topic in ("joint_states", "imu/data", "l_foot/wrench")
    )
    return [
        *_faults([joint], **joint_states, friction="none", drivers=_MESSAGES),
        *_faults(lost, **joint_states, friction="none"),
        *_faults([turned], **joint_states, friction="none", error=math.inf, recovery=_LEARNED),
        *_faults(far, **joint_states),
        *_faults(silence, status="input joint_states", friction="none", drivers=_LIVE),
        *_faults([gyroscope], **imu, error=math.inf),
        *_faults([one_force], **imu),
        *_faults([force], **foot, error=math.inf),
        *_faults([one_wrench], **foot),
    ]
