"""What a second of frames shows about the sensors: sums of readings that depend on each other, and conclusions.

    IMU             mean specific force against gravity; its direction against the soles that stand on the ground and
                    against the foot forces (Newton's second law of the whole robot); angular velocity against the
                    standing legs
    foot sensors    direction of the force in the sole; sum of the forces against the weight; both against the motor
                    torques of the leg
    joint states    motor torque against the torque that gravity and foot force need; velocity against position

Payload, slopes, a crane or a fallen robot are no sensor errors.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence

import numpy as np

from friction_estimator.config import Config
from friction_estimator.estimation.diagnosis.torque_balance import MIN_SPEED, TorqueBalance
from friction_estimator.estimation.health import HARMLESS_FAULTS, JOINTS, Check, SensorFault
from friction_estimator.robot.model import RobotModel
from friction_estimator.types import GRAVITY, BoolArray, Dynamics, FloatArray, SensorFrame

LOADED, _UNLOADED = 0.1, 0.02
"""A foot is loaded above, and free of load below, these fractions of the weight."""
_MIN_AUTOCORRELATION = 0.7
"""Velocities of a joint that moves have a larger correlation with those of the frame before: noise has none. Few of
them may have it by chance, so that a joint must go farther in a shorter time."""
READING_PERIOD = 0.05
"""Time between the frames that are checked [s]."""
_MIN_FRAMES = 10
"""Checked frames from which means are made at least: half a second."""
_ALIGNED_ANGLE, _MISALIGNED_ANGLE = math.radians(30.0), math.radians(50.0)
"""Directions within the first angle agree: slopes and tilted feet are less steep. Beyond the second one they do not."""
_MAX_EQUAL_RATIO = 1.4
"""Two forces or torques agree within this factor: payload, gains and friction change them by less."""
MIN_UNIT_RATIO = 2.0
"""Beyond this factor a torque or velocity has another unit or gear ratio."""
_MIN_CORRELATION = 0.8
"""Correlation (without removing means) above which one quantity is a multiple of another."""
_MIN_TORQUE_SIGMAS = 4.0
"""Root mean square of the torque that a joint needs, above which sign and unit of the measured one show, in standard
deviations of the centres of mass of the robot's weight: an error of two of them is half of that torque."""
_MIN_SWAY = 0.1
"""Root mean square of horizontal accelerations from which the heading of the IMU shows [m/s^2]."""

_FORCES, _SPECIFIC_FORCE = slice(0, 3), slice(3, 6)
"""Rows of ``moments``: sum of the foot forces over the mass, and specific force."""
_RELATIVE_TOLERANCE, _ABSOLUTE_TOLERANCE = 1e-12, 1e-9
"""Differences of equal readings: relative, because interpolation rounds, and absolute, which no sensor resolves."""


class SensorStatistics:
    """Sums over the readings of a block of frames, about one second.

    Quantities are compared by three sums of products: their product, the square of the first, the square of the second.

    Parameters
    ----------
    robot : with n joints and k feet
    size : of the sums of the balance of torques

    Attributes
    ----------
    sums : all of the following sums in one array; they are views of it
    imu, force : (2,) number of frames with a reading of the IMU, sum of its size; (3,) specific force in base axes
    loaded, load, gravity : (k,) frames in which a foot is loaded; (k, 3) its force [N], specific force in its axes
    base_rate : (4,) angular velocity of the base by standing legs and by gyroscope, number of readings [rad/s]
    force_balance, moments : (7,) number of frames with all sensors, foot forces over the mass and specific force, base
        axes [m/s^2]; (6, 6) products of the last six
    foot_share : (k,) force of a foot times specific force, over the mass
    turned : (1 + k, 4 + k) specific force less the foot shares, what each share gains turned up [m/s^2]; their products
    limb : (k, 3) torques of a foot's force at the joints of its limb, and motor torques minus gravity
    unloaded : (k, 4) torques of the whole weight at an unloaded foot, motor torques minus gravity; number of
        frames
    speed : (6, n) step of the position by the velocities, and measured step; number of steps; sum of the steps by the
        velocities, and of the products of two in a row, each by the velocity at its end alone
    balance, rows : (size, size) products of the rows of :class:`TorqueBalance`, and their number
    first : (3 n + 6 + 6 k) first readings: joint positions, velocities, efforts; rate, specific force; wrenches
    unchanged : (3 n + 2 + k,) one where a sensor, in the order of ``first``, has kept all bits of it
    low, high : (2 n,) ends of the joint positions, and of the distances travelled by the joint velocities
    """

    def __init__(self, robot: RobotModel, size: int) -> None:
        n, k = len(robot.joint_names), len(robot.foot_names)
        shapes: tuple[tuple[int, ...], ...] = (
            (2,), (3,), (k,), (k, 3), (k, 3), (4,), (7,), (6, 6), (k,), (1 + k, 4 + k), (k, 3), (k, 4), (6, n),
            (size, size), (),
        )  # fmt: skip
        ends = np.cumsum([math.prod(shape) for shape in shapes]).tolist()
        self.sums = np.zeros(ends[-1])
        starts = [0, *ends[:-1]]
        parts = (self.sums[start:end].reshape(shape) for start, end, shape in zip(starts, ends, shapes, strict=True))
        (
            self.imu, self.force, self.loaded, self.load, self.gravity, self.base_rate, self.force_balance,
            self.moments, self.foot_share, self.turned, self.limb, self.unloaded, self.speed, self.balance, self.rows,
        ) = parts  # fmt: skip
        self.first, self.unchanged = np.zeros(3 * n + 6 + 6 * k), np.ones(3 * n + 2 + k)
        self.low, self.high = np.full(2 * n, np.inf), np.full(2 * n, -np.inf)

    def include(self, others: Sequence[SensorStatistics]) -> SensorStatistics:
        """Replace the sums by those over all these blocks together."""
        self.first = others[-1].first
        for out, name, join in (
            (self.sums, "sums", np.add), (self.unchanged, "unchanged", np.minimum), (self.low, "low", np.minimum),
            (self.high, "high", np.maximum),
        ):  # fmt: skip
            join.reduce([getattr(other, name) for other in others], axis=0, out=out)
        return self


class StatisticsCollector:
    """Adds frames to the evidence of the present block.

    Parameters
    ----------
    robot : the model that also makes the dynamics
    flat : (k,) feet whose soles do not turn while they stand
    balance : of torques, whose rows are added
    """

    def __init__(self, robot: RobotModel, flat: BoolArray, balance: TorqueBalance) -> None:
        self._robot, self._flat, self._balance = robot, flat, balance
        self._travelled, self._no_effort = np.zeros(len(robot.joint_names)), np.full(len(robot.joint_names), np.nan)
        self._position = self._velocity = self._travelled
        self.reset()

    def reset(self) -> None:
        """Begin a block without a frame before it."""
        self._stamp_ns: int | None = None
        self._balance.reset()
        self.begin()

    def begin(self) -> None:
        """Begin a block."""
        self.frames, self.block = 0, SensorStatistics(self._robot, self._balance.size)

    def add(self, frame: SensorFrame, dynamics: Dynamics) -> None:
        """Add the readings of a frame to the sums of the present block."""
        effort = frame.effort if frame.effort.size else self._no_effort
        self._compare_readings(frame, effort)
        self._balance.sum(self.block.balance, self.block.rows)
        if self._robot.base_dofs and frame.imu_fresh:
            self._sum_forces(frame, dynamics, effort)
        self.frames += 1
        self._stamp_ns = frame.stamp_ns

    def _compare_readings(self, frame: SensorFrame, effort: FloatArray) -> None:
        """Compare a frame with the one before, and with the first one of the block."""
        block, n = self.block, frame.position.size
        if self._stamp_ns is not None:
            step = 1e-9 * (frame.stamp_ns - self._stamp_ns)
            expected, change = 0.5 * step * (frame.velocity + self._velocity), frame.position - self._position
            lagged = step * step * frame.velocity * self._velocity
            one = np.ones(n)
            block.speed += np.stack((expected * change, expected**2, change**2, one, expected, lagged))
            self._travelled = self._travelled + expected
        self._position, self._velocity = frame.position, frame.velocity
        reached = np.concatenate((frame.position, self._travelled))
        block.low, block.high = np.minimum(block.low, reached), np.maximum(block.high, reached)
        sensors = frame.angular_velocity, frame.specific_force, frame.wrenches.ravel()
        row = np.concatenate((frame.position, frame.velocity, effort, *sensors))
        if not self.frames:
            block.first = row
        same = np.abs(row - block.first) <= np.maximum(_RELATIVE_TOLERANCE * np.abs(block.first), _ABSOLUTE_TOLERANCE)
        starts = np.concatenate((np.arange(3 * n), [3 * n, 3 * n + 3], np.arange(3 * n + 6, row.size, 6)))
        fresh = np.concatenate((np.ones(3 * n), [frame.imu_fresh] * 2, frame.wrench_fresh))
        block.unchanged *= np.logical_and.reduceat(same, starts) * fresh

    def _sum_forces(self, frame: SensorFrame, dynamics: Dynamics, effort: FloatArray) -> None:
        """Add what IMU, foot sensors and motor torques show of the same forces in a frame whose IMU is fresh."""
        robot, block, velocity = self._robot, self.block, frame.velocity
        f = robot.rotation_imu_to_base @ frame.specific_force
        rate = robot.rotation_imu_to_base @ frame.angular_velocity
        block.imu += 1.0, np.linalg.norm(f)
        block.force += f
        R, J, fresh = dynamics.foot_rotation_to_base, dynamics.foot_jacobian[:, :, 6:], frame.wrench_fresh
        F = np.where(fresh[:, None], frame.wrenches, 0.0)
        size = np.linalg.norm(F[:, :3], axis=1)
        loaded, unloaded = fresh & (size > LOADED * robot.weight), fresh & (size < _UNLOADED * robot.weight)
        block.loaded += loaded
        block.load += loaded[:, None] * F[:, :3]
        block.gravity += loaded[:, None] * (f @ R)
        legs = -(R @ (J[:, 3:] @ velocity)[..., None])[loaded & self._flat, :, 0]
        block.base_rate += (legs * rate).sum(), (legs**2).sum(), len(legs) * (rate**2).sum(), len(legs)
        gravity, contact = dynamics.mass_matrix[6:, :3] @ f, -(F[:, None] @ J)[:, 0]
        motor = np.where(robot.limb, effort - gravity, 0.0)
        block.limb += fresh[:, None] * _products(contact, motor)
        weighted = np.where(unloaded[:, None], -robot.weight * J[:, 2], 0.0)
        block.unloaded[:, :3] += _products(weighted, np.where(unloaded[:, None], motor, 0.0))
        block.unloaded[:, 3] += unloaded
        if fresh.size and fresh.all():
            parts = (R @ F[:, :3, None])[..., 0] / robot.mass
            both = np.concatenate((parts.sum(axis=0), f))
            block.foot_share += parts @ f
            block.force_balance += np.concatenate(([1.0], both))
            block.moments += np.outer(both, both)
            upward = np.linalg.norm(parts, axis=1)[:, None] * f / max(float(np.linalg.norm(f)), 1e-9)
            rows = np.vstack((f - both[:3], upward - parts))
            block.turned += np.concatenate((rows, rows @ rows.T), axis=1)


def _products(first: FloatArray, second: FloatArray) -> FloatArray:
    """Sums (k, 3) of the products of the rows of two arrays (k, n), and of their squares."""
    return np.stack(((first * second).sum(axis=1), (first**2).sum(axis=1), (second**2).sum(axis=1)), axis=1)


class PlausibilityChecks:
    """Checks of units, signs and axes by sums of readings: joint velocities, IMU, foot sensors and motor torques.

    Parameters
    ----------
    config : topics and frames
    robot : weight, limbs and frame of the IMU
    """

    def __init__(self, config: Config, robot: RobotModel) -> None:
        self._config, self._robot = config, robot
        self._joint_topic, self._imu, self._feet = config.output.joint_states_topic, config.imu.topic, config.feet

    def check_publishers(self, mixed: Sequence[int]) -> Iterator[Check]:
        """Check that one publisher sends the readings of joints, IMU and feet: frames with two (1 + s)."""
        topics = self._joint_topic, self._imu, *(foot.wrench_topic for foot in self._feet)
        for topic, frames in zip((topics[0], *topics[len(topics) - len(mixed) + 1 :]), mixed, strict=True):
            unused = "" if topic == self._joint_topic else ", so none is used"
            text = (
                f"{topic}: second publisher on {topic}: two kinds of readings come in turns and contradict each other. "
                f"Which of them are right is not known{unused}: end one of the two nodes, or give it another topic"
            )
            yield Check(SensorFault.MIXED, topic, text if frames else "")

    def check_velocities(self, sums: SensorStatistics) -> Iterator[Check]:
        """Check the sign and unit of each joint velocity against the change of the joint position."""
        product, expected, step, count = sums.speed[:4]
        moves = (count >= _MIN_FRAMES) & (np.maximum(expected, step) > count * (MIN_SPEED * READING_PERIOD) ** 2)
        correlation, slope = _correlation_and_ratio(product, expected, step)
        flipped = moves & (correlation < -_MIN_CORRELATION)
        slope /= np.where(correlation > _MIN_CORRELATION, correlation, 1.0)  # noise of the velocities makes it smaller
        scaled = moves & (correlation > _MIN_CORRELATION) & ((slope > MIN_UNIT_RATIO) | (slope < 1.0 / MIN_UNIT_RATIO))
        if not moves.any():
            return
        what = f"{self._joint_topic}: the velocity of joint {JOINTS} has the opposite sign of the change of"
        text = f"{what} its position: correct one of them in the driver"
        yield Check(SensorFault.VELOCITY_SIGN, self._joint_topic, text if flipped.any() else "", flipped)
        what = f"{self._joint_topic}: the position of joint {JOINTS} changes {_median_text(slope[scaled])} times as"
        text = f"{what} fast as its velocity: publish both in radians (57 or 0.017: one of them is in degrees)"
        yield Check(SensorFault.VELOCITY_UNIT, self._joint_topic, text if scaled.any() else "", scaled)

    def check_gravity(self, sums: SensorStatistics) -> Iterator[Check]:
        """Check the unit of the specific force: its mean is gravity, whatever the robot does."""
        count = float(sums.imu[0])
        if count < _MIN_FRAMES:
            return
        size, mean = float(sums.imu[1]) / count, float(np.linalg.norm(sums.force)) / count
        remedy = ""
        if 1.0 / _MAX_EQUAL_RATIO < size < _MAX_EQUAL_RATIO:
            remedy = "is it in g? Publish it in m/s^2"
        elif size < GRAVITY / MIN_UNIT_RATIO:
            remedy = "is gravity removed? Publish what the accelerometer reads, in m/s^2"
        elif mean > GRAVITY * MIN_UNIT_RATIO:
            remedy = "publish it in m/s^2"
        text = f"{self._imu}: the mean specific force is {size:.3g} m/s^2, not {GRAVITY:.2f} m/s^2: {remedy}"
        yield Check(SensorFault.ACCELEROMETER_UNIT, self._imu, text if remedy else "")

    def check_directions(self, sums: SensorStatistics, known: Collection[tuple[SensorFault, str]]) -> Iterator[Check]:
        """Check the directions of foot forces and specific force against the soles that stand on the ground.

        A foot sensor with an offset may point down, too. Its error is the same in the air and on the ground, and that
        of a turned one is not: once turned, the forces of all feet together must vary no more than as they are.
        """
        tilts, loads = [], np.array([_tilt(load) for load in sums.load])
        loads *= [(SensorFault.WRENCH_OFFSET, foot.wrench_topic) not in known for foot in self._feet]
        turned = loads > _MISALIGNED_ANGLE
        scatter = _scatter(sums, turned) - _scatter(sums, np.zeros_like(turned))
        is_offset = scatter > sums.force_balance[0] * (LOADED * GRAVITY) ** 2
        for foot, config in enumerate(self._feet):
            if sums.loaded[foot] < _MIN_FRAMES or not all(config.held_axes) or (turned[foot] and is_offset):
                continue
            load, gravity = float(loads[foot]), _tilt(sums.gravity[foot])
            what, text = f"{config.wrench_topic}: the force of the foot sensor {config.name!r}", ""
            if load > math.pi - _ALIGNED_ANGLE:
                text = f"{what} points down: set feet.{config.name}.flip"
            elif load > _MISALIGNED_ANGLE:
                text = (
                    f"{what} is turned by {math.degrees(load):.0f} degrees against the sole: publish it in the axes of "
                    f"feet.{config.name}.frame"
                )
            if gravity < _ALIGNED_ANGLE and (text or load < _ALIGNED_ANGLE):
                yield Check(SensorFault.WRENCH_DIRECTION, config.wrench_topic, text)
            if load < _ALIGNED_ANGLE:
                tilts.append(gravity)
        tilt = min(tilts, default=_ALIGNED_ANGLE)
        if not _ALIGNED_ANGLE <= tilt <= _MISALIGNED_ANGLE:
            text = (
                f"{self._imu}: the specific force is turned by {math.degrees(tilt):.0f} degrees against the soles on "
                "the ground: set imu.frame to a frame with the axes of the IMU"
            )
            if tilt > math.pi - _ALIGNED_ANGLE:
                text = f"{self._imu}: the specific force at rest points down and should point up: change its sign"
            yield Check(SensorFault.IMU_DIRECTION, self._imu, text if tilt > _MISALIGNED_ANGLE else "")

    def check_gyroscope(self, sums: SensorStatistics) -> Iterator[Check]:
        """Check sign and unit of the angular velocity, against that of the base by the standing legs."""
        product, legs, rate, count = sums.base_rate
        correlation, slope = (float(value) for value in _correlation_and_ratio(product, legs, rate))
        if count < _MIN_FRAMES or abs(correlation) < _MIN_CORRELATION:
            return
        text, what = "", f"{self._imu}: the angular velocity is"
        if correlation < 0.0:
            text = f"{what} opposite to that of the standing legs: change its sign, or set imu.frame"
        elif slope > MIN_UNIT_RATIO:
            unit = "is it in degrees per second? Publish it in" if 40.0 < slope < 80.0 else "publish it in"
            text = f"{what} {slope:.2g} times that of the standing legs: {unit} rad/s"
        yield Check(SensorFault.GYROSCOPE_UNIT, self._imu, text)

    def check_wrenches(self, sums: SensorStatistics, known: Collection[tuple[SensorFault, str]]) -> Iterator[Check]:
        """Check the unit of foot sensors: wrong only where both the weight and the torques of the legs disagree."""
        correlation, slope = _correlation_and_ratio(*sums.limb.T)
        significant = correlation > _MIN_CORRELATION
        *idle, idle_count = sums.unloaded.T
        idle_correlation, carried = _correlation_and_ratio(*idle)
        weight = float(np.trace(sums.moments[_SPECIFIC_FORCE, _SPECIFIC_FORCE]))
        if sums.force_balance[0] < _MIN_FRAMES:
            return
        shares = np.stack((np.ones_like(slope), np.where(significant, slope, 1.0))) @ sums.foot_share / weight
        error, corrected = np.abs(np.log(np.maximum(shares, np.finfo(float).tiny)))
        explains = corrected < min(0.5 * error, math.log(_MAX_EQUAL_RATIO))
        for foot, config in enumerate(self._feet):
            others = SensorFault.WRENCH_UNIT, SensorFault.NO_WRENCH
            if any(topic == config.wrench_topic and kind not in HARMLESS_FAULTS.union(others) for kind, topic in known):
                continue
            what = f"{config.wrench_topic}: the foot sensor {config.name!r} reads"
            scaled = significant[foot] and not 1.0 / _MAX_EQUAL_RATIO < slope[foot] < _MAX_EQUAL_RATIO
            if significant[foot] and (explains or not scaled):
                is_kilo = 500.0 < slope[foot] < 2000.0
                remedy = "is it in kN? Publish it in N" if is_kilo else "check unit and calibration"
                factor = f"{1.0 / slope[foot]:.2g} times the force that weight and leg torques show"
                text = f"{what} {factor}: {remedy}" if scaled else ""
                yield Check(SensorFault.WRENCH_UNIT, config.wrench_topic, text)
            empty = idle_correlation[foot] > _MIN_CORRELATION and carried[foot] > 1.0 / MIN_UNIT_RATIO
            empty = empty and not significant[foot]
            if sums.loaded[foot] >= _MIN_FRAMES or (idle_count[foot] >= _MIN_FRAMES and empty):
                text = f"{what} nothing while the torques of its leg carry the robot: check cable, unit and calibration"
                yield Check(SensorFault.NO_WRENCH, config.wrench_topic, text if empty else "")

    def check_heading(self, sums: SensorStatistics) -> Iterator[Check]:
        """Check the heading of the IMU on the trunk: horizontal accelerations against the foot forces."""
        count = float(sums.force_balance[0])
        if count < 2 * _MIN_FRAMES:
            return
        mean = sums.force_balance[1:] / count
        covariance = sums.moments / count - np.outer(mean, mean)
        up = mean[3:] / np.linalg.norm(mean[3:])
        forces, specific = covariance[_FORCES, _FORCES], covariance[_SPECIFIC_FORCE, _SPECIFIC_FORCE]
        both = covariance[_FORCES, _SPECIFIC_FORCE]
        size = math.sqrt(_level(forces, up) * _level(specific, up))
        along, axis = _level(both, up), (both[2, 1] - both[1, 2], both[0, 2] - both[2, 0], both[1, 0] - both[0, 1])
        across = float(up @ axis)
        angle = math.atan2(across, along)
        if (
            size < _MIN_SWAY**2
            or math.hypot(along, across) < _MIN_CORRELATION * size
            or _ALIGNED_ANGLE < abs(angle) < _MISALIGNED_ANGLE
        ):
            return
        text = (
            f"{self._imu}: horizontal accelerations are turned by {-math.degrees(angle):.0f} degrees about the "
            "vertical against the foot forces: set imu.frame, or the frames of the feet, to the axes of the sensors"
        )
        yield Check(SensorFault.HEADING, self._imu, text if abs(angle) > _MISALIGNED_ANGLE else "")

    def check_torques(self, sums: SensorStatistics, balance: TorqueBalance, changed: FloatArray) -> Iterator[Check]:
        """Check sign and unit of motor torques, against what moving joints need, by what friction leaves of both.

        With a floating base these are the joints of legs that stand. Torques that have changed in mid-run by a known
        factor, ``changed`` (n,), are checked by that factor, like those whose factor explains the balance; NaN: no.
        """
        product, needed, measured, count = balance.torques(sums.balance)
        changed = np.fmax(changed, balance.factor)
        correlation, slope = _correlation_and_ratio(product, needed, measured)
        mean = np.divide(needed, count, out=np.zeros_like(needed), where=count >= _MIN_FRAMES)
        shown = mean > (_MIN_TORQUE_SIGMAS * self._config.kalman.link_com_std * self._robot.weight) ** 2
        if self._robot.base_dofs:
            stands = sums.foot_share > LOADED * np.trace(sums.moments[_SPECIFIC_FORCE, _SPECIFIC_FORCE])
            shown &= self._robot.limb[stands].any(axis=0)
        known = np.isfinite(changed)
        shown, slope = shown | known, np.where(known, changed, slope)
        correlation = np.where(known, np.sign(changed), correlation)
        flipped = shown & (correlation < -_MIN_CORRELATION)
        scaled = shown & (correlation > _MIN_CORRELATION) & ((slope > MIN_UNIT_RATIO) | (slope < 1.0 / MIN_UNIT_RATIO))
        if shown.any():
            what, needs = f"{self._joint_topic}: the effort of joint", "the torque that gravity and foot forces need"
            text = f"{what} {JOINTS} has the opposite sign of {needs}: change its sign in the driver"
            yield Check(SensorFault.EFFORT_SIGN, self._joint_topic, text if flipped.any() else "", flipped)
            text = (
                f"{what} {JOINTS} is {_median_text(slope[scaled])} times {needs}: publish joint torques in "
                "N m (check unit, gear ratio and torque constant)"
            )
            yield Check(SensorFault.EFFORT_UNIT, self._joint_topic, text if scaled.any() else "", scaled)


def _tilt(vector: FloatArray) -> float:
    """Angle to the z axis [rad]."""
    return math.atan2(math.hypot(vector[0], vector[1]), vector[2])


def _scatter(sums: SensorStatistics, turned: BoolArray) -> float:
    """Squares of what foot forces, some of them turned (k,), leave of the specific force, less those of its mean."""
    signs = np.concatenate(([1.0], np.where(turned, -1.0, 0.0)))
    mean, products = signs @ sums.turned[:, :3], sums.turned[:, 3:]
    return float(signs @ products @ signs - mean @ mean / max(float(sums.force_balance[0]), 1.0))


def _level(product: FloatArray, up: FloatArray) -> float:
    """Trace of the horizontal part of a (3, 3) product, not below zero for a covariance."""
    return float(np.trace(product) - up @ product @ up)


def _median_text(values: FloatArray) -> str:
    return f"{float(np.median(values)):.2g}" if values.size else ""


def _correlation_and_ratio(
    product: FloatArray, reference: FloatArray, other: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Correlation of two quantities, and the second as a multiple of the first, from their sums of products.

    Parameters
    ----------
    product, reference, other : sums of the product, of the first quantity squared, of the second one squared
    """
    size = np.sqrt(reference * other)
    return (
        np.divide(product, size, out=np.zeros_like(size), where=size > 0.0),
        np.divide(product, reference, out=np.ones_like(size), where=reference > 0.0),
    )


def is_motion(sums: FloatArray) -> BoolArray:
    """True (n,) where velocities show a motion, not noise or an offset; sums (6, n): ``SensorStatistics.speed``.

    Drivers publish steps of the velocity, and often none of them is zero.
    """
    _, square, _, count, total, lagged = sums
    highest = MIN_SPEED * READING_PERIOD
    offset = np.clip(total / np.maximum(count, 1.0), -highest, highest)
    removed = offset * (2.0 * total - count * offset)
    return np.asarray(lagged - removed > _MIN_AUTOCORRELATION * (2.0 * square - lagged - removed))
