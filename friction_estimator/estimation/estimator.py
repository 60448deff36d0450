"""The estimator of the public API: raw samples in, friction estimates out."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from friction_estimator.config import Config
from friction_estimator.errors import InputError, choices
from friction_estimator.estimation.compensation import FrictionCompensation, TransmittedLaws
from friction_estimator.estimation.diagnosis.innovations import InnovationExcess
from friction_estimator.estimation.diagnosis.sensor_checks import SensorChecks
from friction_estimator.estimation.health import Check, Health
from friction_estimator.estimation.pipeline import LEARNING_STAGES, NUMERICAL_ERRORS, Pipeline, VelocityEstimator
from friction_estimator.estimation.readings.sample_checks import SampleChecks
from friction_estimator.estimation.readings.synchronizer import Synchronizer
from friction_estimator.estimation.validity import JointDiagnosis, advice
from friction_estimator.laws.fit_law import with_linear_laws
from friction_estimator.laws.identified import IdentifiedParameters, check_effort, check_identified
from friction_estimator.types import (
    CommandSample,
    FrictionEstimate,
    ImuSample,
    JointSample,
    Reading,
    SensorFrame,
    WrenchSample,
)

_OTHER_ROBOT = (
    "the parameters were identified with another robot model (names, limits or masses differ): check that they belong "
    "to this robot"
)


class Estimator:
    """Checks of samples, synchronizer, pipeline and checks of sensors as one object, for node, replay and benchmarks.

    Parameters
    ----------
    config : the whole configuration
    urdf_xml : text of the URDF

    Attributes
    ----------
    pipeline : the stages that make an estimate of a frame
    compensation : what makes ``FrictionEstimate.compensation``; None unless ``compensation.enabled``
    innovations : with whose excess sigma grows

    Raises
    ------
    ConfigError, RobotModelError
        When configuration and robot do not fit.
    """

    def __init__(self, config: Config, urdf_xml: str) -> None:
        self.config = config
        self._health = Health()
        self._newest_frame: SensorFrame | None = None
        self.pipeline = Pipeline(config, urdf_xml, self._health)
        robot, laws, velocity_std = self.pipeline.robot, self.pipeline.friction.laws, config.sensors.velocity_std
        for text in robot.warnings:
            self._health.add_event("robot_model", None, text)
        delays = config.imu.delay, *(foot.delay for foot in config.feet)
        self._synchronizer = Synchronizer(
            config.synchronizer,
            len(robot.joint_names),
            len(config.feet),
            not config.robot.fixed_base,
            self._health,
            delays,
            robot.weight,
        )
        self.compensation: FrictionCompensation | None = None
        self._readings_were_wrong = False
        self._velocity_estimator = VelocityEstimator(config, robot.joint_names)
        self._sample_checks = SampleChecks(config, robot, self._health)
        self._sensor_checks = SensorChecks(
            config,
            robot,
            self._health,
            self._synchronizer,
            lambda: self.pipeline.friction.sensor_calibration(),
            self._further_checks,
        )
        if config.has_compensation:
            transmitted_laws = TransmittedLaws(laws, robot.motors)
            self.compensation = FrictionCompensation(
                config.compensation, transmitted_laws, robot.effort_limit, velocity_std
            )
        self.innovations = InnovationExcess(self._health, robot.limb)

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Order of every joint array, (n)."""
        return self.pipeline.robot.joint_names

    @property
    def foot_names(self) -> tuple[str, ...]:
        """Order of every foot array, (k)."""
        return self.pipeline.robot.foot_names

    def add_joints(self, sample: JointSample) -> list[FrictionEstimate]:
        """Add a joint sample; return the estimates that became possible, oldest first.

        Raises
        ------
        InputError
            When a value is not finite or cannot be true; the sample is not used.
        """
        joints, before = self._sample_checks.joints(sample), []
        if self._sample_checks.switched:
            before = self.flush()
            self._synchronizer.reset()
        if joints is None:
            if (check := self._sample_checks.zeros).text:
                self._sensor_checks.use((check,), sample.stamp_ns)
            return before
        return before + self._estimates(self._synchronizer.add_joints(joints))

    def add_imu(self, sample: ImuSample) -> list[FrictionEstimate]:
        """Add an IMU sample; return the estimates that became possible. Raises InputError like :meth:`add_joints`."""
        frames = self._synchronizer.add(0, *self._sample_checks.imu(sample))
        return self._estimates(frames) if frames else []

    def add_wrench(self, sample: WrenchSample) -> list[FrictionEstimate]:
        """Add a foot wrench; return the estimates that became possible. Raises InputError like :meth:`add_joints`."""
        stamp, wrench = self._sample_checks.wrench(sample)
        frames = self._synchronizer.add(1 + sample.foot, stamp, wrench)
        return self._estimates(frames) if frames else []

    def add(self, reading: Reading | CommandSample) -> list[FrictionEstimate]:
        """Add a sample of any sensor, or a command; return the estimates that became possible.

        Raises
        ------
        InputError
            As :meth:`add_joints`, and for anything else.
        """
        if isinstance(reading, JointSample):
            return self.add_joints(reading)
        if isinstance(reading, ImuSample):
            return self.add_imu(reading)
        if isinstance(reading, WrenchSample):
            return self.add_wrench(reading)
        if isinstance(reading, CommandSample):
            return self.add_command(reading)
        raise InputError(
            f"a {type(reading).__name__} is no sample: add a JointSample, ImuSample, WrenchSample or CommandSample"
        )

    def add_command(self, sample: CommandSample) -> list[FrictionEstimate]:
        """Add desired velocities for friction compensation; like the other ``add_*``, but no estimate waits for them.

        Raises
        ------
        InputError
            When a value is not finite or cannot be true; the sample is not used.
        """
        command = self._sample_checks.command(sample)
        if self.compensation is not None:
            self.compensation.set_command(command)
        return []

    @property
    def is_waiting(self) -> bool:
        """True while a joint sample waits for a reading of another sensor."""
        return self._synchronizer.is_waiting

    def flush(self) -> list[FrictionEstimate]:
        """Estimates of the joint samples that still wait for other sensors: the end of a recording."""
        return self._estimates(self._synchronizer.flush())

    def _estimates(self, frames: list[SensorFrame]) -> list[FrictionEstimate]:
        estimates: list[FrictionEstimate] = []
        for frame in frames:
            try:
                if math.isnan(frame.velocity[0]):
                    frame = self._velocity_estimator.step(frame)
                estimates += self.process(frame)
                self._newest_frame = frame
                self._check_sensors(frame)
            except NUMERICAL_ERRORS as error:
                self._restart(error, frame)
        return estimates

    def process(self, frame: SensorFrame) -> list[FrictionEstimate]:
        """Estimates that a frame makes possible, oldest first: one here, any number in subclasses.

        The filters restart when it raises one of ``NUMERICAL_ERRORS``.
        """
        estimate = self.pipeline.step(frame)
        self.innovations.add(estimate)
        if self._health.innovation_excess > 1.0:
            excess = self.innovations.excess
            estimate.sigma, estimate.model_sigma = excess * estimate.sigma, excess * estimate.model_sigma
        if (compensation := self.compensation) is not None:
            estimate.compensation = compensation.step(estimate)
            if compensation.test.has_failed and not self._readings_were_wrong:
                for wrong in (True, False):  # the law has learned from the own torque: back to before
                    self.pipeline.friction.set_sensor_fault(wrong, math.inf)
        return [estimate]

    def _further_checks(self) -> Iterator[Check]:
        """Checks of sensors that other parts make."""
        yield from self._sample_checks.checks()
        config = self.config
        topics = config.output.joint_states_topic, config.imu.topic, *(foot.wrench_topic for foot in config.feet)
        yield from self._synchronizer.checks(topics)
        if self.compensation is not None:
            yield from self.compensation.checks(config.output.joint_states_topic)

    def _check_sensors(self, frame: SensorFrame) -> None:
        """Give the frame to the checks of the sensors where they are due, and what they find to the friction stage."""
        checks, sensed = self._sensor_checks, self.pipeline.sensed
        if sensed is None or (frame.stamp_ns < checks.due_ns and frame.dt):
            return
        checks.add(frame, sensed.dynamics)
        if (wrong := checks.readings_are_wrong) != self._readings_were_wrong:
            self._readings_were_wrong = wrong
            self.pipeline.friction.set_sensor_fault(wrong, checks.wrong_for)

    def reset(self) -> None:
        """Restart all filters and drop waiting samples; identified parameters stay."""
        self._sample_checks.reset()
        self._synchronizer.reset()
        self.pipeline.reset()
        self._sensor_checks.reset()
        self.innovations.reset()
        if self.compensation is not None:
            self.compensation.reset()

    def reset_to_prior(self) -> None:
        """Reset, and drop the identified parameters too."""
        self.reset()
        self.pipeline.friction.reset_to_prior()

    @property
    def frozen(self) -> bool:
        """True while identification pauses."""
        return self.pipeline.friction.frozen

    @frozen.setter
    def frozen(self, value: bool) -> None:
        self.pipeline.friction.frozen = value

    @property
    def identified(self) -> IdentifiedParameters:
        """Identified parameters of all joints, to keep over a restart."""
        try:
            identified = self.pipeline.friction.identified
        except NUMERICAL_ERRORS as error:
            self._restart(error)
            identified = self.pipeline.friction.identified
        return replace(identified, robot=self.pipeline.robot.identity)

    def restore(self, identified: IdentifiedParameters) -> tuple[str, ...]:
        """Start from saved parameters; those of nonlinear laws are fitted by the linear laws of the filters.

        Returns
        -------
        Notes: one sentence for each joint whose law was fitted by another, with the error; and which joints start anew.

        Raises
        ------
        ConfigError
            When the parameters do not fit, are not finite, or cannot be true: the estimator keeps what it has.
        """
        check_identified(identified)
        names = self.pipeline.robot.motors.names
        fitting, notes = with_linear_laws(identified, names, self.pipeline.friction.laws.law_names)
        limits = dict(zip(names, self.pipeline.robot.effort_limit.tolist(), strict=True))
        check_effort(fitting, [limits.get(name, math.inf) for name in fitting.joint_names])
        if identified.robot not in ("", self.pipeline.robot.identity):
            fitting, notes = replace(fitting, calibration=None), (*notes, _OTHER_ROBOT)
        self.pipeline.friction.restore(fitting)
        anew = [name for name in names if name not in identified.joint_names]
        if (identified.has_presliding or identified.has_ripple) and self.config.observer not in LEARNING_STAGES:
            text = f"the saved presliding and ripple are not used: that needs observer: {choices(LEARNING_STAGES)}"
            notes = (*notes, text)
        return (*notes, *([f"nothing was saved of {', '.join(anew)}: there the law starts anew"] if anew else []))

    @property
    def health(self) -> Health:
        """Counters and flags for diagnostics; the flags are those of the newest frame."""
        return self._health

    def warnings(self) -> tuple[str, ...]:
        """What the user should know about the run so far, one sentence each."""
        health, texts = self.health, list[str]()
        if health.late:
            texts.append(f"{health.late} joint states came too late to be used: raise synchronizer.max_wait")
        if health.stray:
            texts.append(
                f"{health.stray} joint states had stamps far from the others: they are not used; check the clock"
            )
        if unlisted := health.event_count - len(health.events):
            texts.append(f"{unlisted} earlier events are not listed")
        if health.restarts > 1:
            texts.append(
                f"filters restarted {health.restarts} times, because the stamps of the joint states paused "
                f"{health.gaps} times and jumped back {health.time_jumps} times: check the clock of the driver"
            )
        texts += map(str, health.events)
        events = {event.text for event in health.events}
        texts += [finding for finding in health.findings if finding not in events]
        return (*texts, *advice(self.diagnose()))

    def diagnose(self) -> tuple[JointDiagnosis, ...]:
        """Why the friction of each joint should not be used now, (n).

        A sensor that the joint needs is wrong or silent, its law is new, or a number is not finite.
        """
        return self.pipeline.validity.diagnose()

    def invalid_reasons(self) -> tuple[str, ...]:
        """Texts of :meth:`diagnose`, (n); empty where the friction may be used."""
        return tuple(diagnosis.text for diagnosis in self.diagnose())

    def _restart(self, error: Exception, frame: SensorFrame | None = None) -> None:
        """Restart all filters after an error that no stage has handled."""
        frame = frame or self._newest_frame
        self._health.add_error_restart("all filters", 0 if frame is None else frame.stamp_ns, error)
        self.reset()
