"""``replay``: the estimator over a recorded or simulated run, with every estimate as rows of arrays."""

from __future__ import annotations

import os
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from friction_estimator.api.simulate import Simulation
from friction_estimator.config import Config
from friction_estimator.errors import ConfigError, InputError, choices, extra_packages
from friction_estimator.estimation.estimator import Estimator
from friction_estimator.estimation.smoothing import SmoothedEstimator
from friction_estimator.io.bags.arrays import true_friction
from friction_estimator.io.bags.reader import BagReader
from friction_estimator.io.bags.replay import Refused, replay_bag
from friction_estimator.io.parameters import load_parameters, save_parameters
from friction_estimator.io.robot import Robot, as_robot, robot_names
from friction_estimator.kernels import compiler
from friction_estimator.laws.identified import IdentifiedParameters
from friction_estimator.messages.recording import RunDescription
from friction_estimator.metrics import JointErrors, joint_errors
from friction_estimator.types import (
    AnyPath,
    BoolArray,
    FloatArray,
    FrictionEstimate,
    ImuSample,
    IntArray,
    JointSample,
    Progress,
    Reading,
    ShortRepr,
    WrenchSample,
)

_OF_JOINTS = (
    "position", "velocity", "effort", "friction", "sigma", "measured", "model", "model_sigma", "external_torque",
)  # fmt: skip
_OF_LAW = ("coulomb", "viscous", "coulomb_sigma", "viscous_sigma")
"""Attributes of an estimate, and of its law, that have one value per joint."""
_OF_BASE = {
    "position_base_in_world": (3,),
    "rotation_base_to_world": (3, 3),
    "linear_velocity": (3,),
    "angular_velocity": (3,),
}
_PROGRESS_STRIDE = 1000  # samples between two notes of progress
_FRAME_SIGNALS = (
    "position", "velocity", "effort", "friction", "sigma", "truth", "measured", "model", "external_torque", "coulomb",
    "viscous",
)  # fmt: skip
"""Columns of a frame."""
ESTIMATE_COLOUR, _TRUTH_COLOUR = "#1f5fbf", "#c92a2a"
"""Colours of figures."""
MAX_CURVE_POINTS = 3000
"""Points of a curve at most: a figure has fewer pixels."""


@dataclass(frozen=True, slots=True, repr=False)
class ReplayResult(ShortRepr):
    """Estimates of a whole run: one row per joint sample, one column per joint.

    Attributes
    ----------
    robot : configuration and URDF that were used
    joint_names : (n) names of the columns
    time : (m,) since the first estimate [s]
    stamp_ns : (m,) header stamps [ns]
    position, velocity, effort : (m, n) what the joints measured [rad, rad/s, N m]
    friction, sigma : (m, n) friction torque and its standard deviation [N m]
    measured : (m, n) True where measurements determine the friction, False where the identified law alone does
    model, model_sigma : (m, n) friction by the identified law at this velocity, and its standard deviation [N m]
    external_torque : (m, n) torque that neither ground contact nor friction explains [N m], NaN while unknown
    coulomb, viscous : (m, n) identified F_c [N m] and F_v [N m s/rad]
    coulomb_sigma, viscous_sigma : (m, n) their standard deviations
    contact_phase : (m,) name of the contact phase
    position_base_in_world : (m, 3) of ``base_link`` [m]
    rotation_base_to_world : (m, 3, 3)
    linear_velocity, angular_velocity : (m, 3) of ``base_link``, world axes [m/s], base axes [rad/s]
    truth : (m, n) true friction torque [N m], NaN where it was not recorded; None without ground truth
    identified : friction parameters at the end of the run
    warnings : what the user should know about the run, one sentence each
    """

    robot: Robot
    joint_names: tuple[str, ...]
    time: FloatArray
    stamp_ns: IntArray
    position: FloatArray
    velocity: FloatArray
    effort: FloatArray
    friction: FloatArray
    sigma: FloatArray
    measured: BoolArray
    model: FloatArray
    model_sigma: FloatArray
    external_torque: FloatArray
    coulomb: FloatArray
    viscous: FloatArray
    coulomb_sigma: FloatArray
    viscous_sigma: FloatArray
    contact_phase: np.ndarray[Any, np.dtype[np.str_]]
    position_base_in_world: FloatArray
    rotation_base_to_world: FloatArray
    linear_velocity: FloatArray
    angular_velocity: FloatArray
    truth: FloatArray | None
    identified: IdentifiedParameters
    warnings: tuple[str, ...]

    def errors(self, after: float = 0.0) -> JointErrors:
        """Errors of the friction of every joint, from this time [s] on.

        Raises
        ------
        ConfigError
            When the run has no ground truth.
        """
        if self.truth is None:
            raise ConfigError("the run has no ground truth: errors are known only for simulated runs")
        where = np.broadcast_to((self.time >= after)[:, None], self.friction.shape)
        return joint_errors(self.friction, self.truth, self.sigma, where)

    def to_frame(self) -> Any:
        """All signals as a pandas frame, one row per sample; ``frame["friction", "l_knee"]`` is one of its columns.

        Needs pandas.
        """
        with extra_packages():
            import pandas as pd

        signals = {name: getattr(self, name) for name in _FRAME_SIGNALS}
        columns = {
            (name, joint): values[:, column]
            for name, values in signals.items()
            if values is not None
            for column, joint in enumerate(self.joint_names)
        }
        frame = pd.DataFrame(columns, index=pd.Index(self.time, name="time [s]"))
        frame.columns.names = ["quantity", "joint"]
        frame["contact_phase", ""] = self.contact_phase
        return frame

    def plot(self, joints: Sequence[str] | None = None) -> Any:
        """Friction of these joints (None: all) over time, with two standard deviations, and over the velocity.

        Needs matplotlib; the result is a ``matplotlib.figure.Figure``, which a notebook shows.

        Raises
        ------
        ConfigError
            When the result has no such joint.
        """
        with extra_packages():
            from matplotlib.figure import Figure

        names = chosen_joints(joints, self.joint_names)
        figure = Figure(figsize=(10.0, 1.9 * len(names)), layout="constrained")
        axes = figure.subplots(len(names), 2, squeeze=False, width_ratios=(2, 1), sharex="col")
        rows = np.unique(np.linspace(0, self.time.size - 1, MAX_CURVE_POINTS).astype(int))
        for (over_time, over_velocity), name in zip(axes, names, strict=True):
            joint = self.joint_names.index(name)
            time, friction, spread = self.time[rows], self.friction[rows, joint], 2.0 * self.sigma[rows, joint]
            over_time.fill_between(
                time, friction - spread, friction + spread, color=ESTIMATE_COLOUR, alpha=0.25, linewidth=0
            )
            over_time.plot(time, friction, color=ESTIMATE_COLOUR, linewidth=1.0, label="estimate, 2 sigma")
            over_velocity.plot(self.velocity[rows, joint], friction, ".", color=ESTIMATE_COLOUR, markersize=2.0)
            shown = friction
            if self.truth is not None:
                shown = truth = self.truth[rows, joint]
                over_time.plot(time, truth, color=_TRUTH_COLOUR, linewidth=0.8, linestyle="--", label="truth")
                over_velocity.plot(self.velocity[rows, joint], truth, ".", color=_TRUTH_COLOUR, markersize=1.0)
            limit = 1.3 * max(float(np.nanmax(np.abs(shown))), 1e-3)  # sigma is large before the first motion
            over_time.set(ylim=(-limit, limit), ylabel=f"{name} [N m]")
            over_velocity.set(ylim=(-limit, limit))
        axes[0, 0].legend(loc="upper right", fontsize="small")
        axes[-1, 0].set_xlabel("time [s]")
        axes[-1, 1].set_xlabel("velocity [rad/s]")
        return figure

    def save_parameters(self, path: AnyPath) -> None:
        """Write the friction parameters at the end of the run: the live node can start from this YAML.

        Raises
        ------
        ConfigError
            When the file cannot be written.
        """
        save_parameters(path, self.identified)


def replay(
    source: AnyPath | Simulation,
    robot: AnyPath | Robot | None = None,
    *,
    parameters: AnyPath | IdentifiedParameters | None = None,
    smooth: float | None = None,
    output: AnyPath | None = None,
    overwrite: bool = False,
    namespace: str = "",
    progress: Progress | None = None,
) -> ReplayResult:
    """Run the estimator over a recorded or simulated run, as fast as possible: the same numbers as the live node.

    Parameters
    ----------
    source : rosbag2 with joint states, IMU and foot wrenches, or a simulation
    robot : name or path as for :func:`~friction_estimator.load_robot`, or a loaded robot; None: the robot that the bag
        names, or that was simulated
    parameters : identified parameters to start from, or the path of their YAML
    smooth : fixed-lag smoothing: each estimate also uses this many seconds of later data, ``inf``: all of it; None: as
        live
    output : rosbag2 to write with the topics of the live node; only for a bag
    overwrite : replace an older output
    namespace : of the topics in the bag
    progress : called with the amount of finished work, and with the whole

    Raises
    ------
    BagError
        When the bag lacks a topic, or no message of it can be used.
    ConfigError
        When no robot is known, or the observer cannot be smoothed.
    InputError
        When no sample of the simulation can be used.

    Examples
    --------
    >>> import friction_estimator as fe
    >>> result = fe.replay(fe.simulate("suralp", duration=0.05))
    >>> result.friction.shape
    (50, 12)
    """
    start = load_parameters(parameters) if isinstance(parameters, (str, os.PathLike)) else parameters
    rows = _Rows()
    if isinstance(source, Simulation):
        if output is not None:
            raise ConfigError("a simulation is replayed in memory: save it as a bag first, then replay that bag")
        chosen = source.robot if robot is None else as_robot(robot)
        estimator, refused = _feed(source, chosen, start, smooth, rows, progress)
        warnings = (*refused, *estimator.warnings())
        if not rows.stamps.size:
            raise InputError(f"no estimate could be made from the simulation: {'; '.join(warnings)}")
        order = {sample.joints.stamp_ns: row for row, sample in enumerate(source.samples)}
        joints = _columns(source, estimator)
        truth = source.friction[[order[stamp] for stamp in rows.stamps.tolist()]][:, joints]
        return rows.result(chosen, estimator.joint_names, truth, estimator.identified, warnings)
    reader = BagReader(source, namespace)
    chosen = as_robot(robot_of_bag(reader) if robot is None else robot)
    summary = replay_bag(
        reader,
        output,
        chosen.config,
        chosen.urdf_xml,
        on_estimate=rows.add,
        start=start,
        overwrite=overwrite,
        robot=chosen.name,
        smooth=smooth,
        progress=progress,
    )
    recorded = true_friction(reader, summary.joint_names, rows.stamps)
    return rows.result(chosen, summary.joint_names, recorded, summary.identified, summary.warnings)


def chosen_joints(joints: Sequence[str] | None, known: tuple[str, ...]) -> tuple[str, ...]:
    """Joints of a figure: ``joints``, or all ``known`` joints where that is None.

    Raises
    ------
    ConfigError
        When ``joints`` is empty, or a name in it is not known.
    """
    names = known if joints is None else tuple(joints)
    unknown = set(names) - set(known)
    if unknown or not names:
        raise ConfigError(f"no joint {choices(unknown)} in the result; it has {choices(known)}")
    return names


def robot_of_bag(reader: BagReader) -> str:
    """Name of the robot that a bag of this package describes.

    Raises
    ------
    ConfigError
        When the bag names none; the message names the robots.
    """
    name = RunDescription.from_custom_data(reader.custom_data).robot
    if name not in robot_names():
        named = f"names the robot {name!r}, which is not known here" if name else "does not name its robot"
        raise ConfigError(
            f"the bag {reader.path} {named}: give one of {choices(robot_names())}, or the path of the robot's YAML"
        )
    return name


def _feed(
    source: Simulation,
    robot: Robot,
    start: IdentifiedParameters | None,
    smooth: float | None,
    rows: _Rows,
    progress: Progress | None,
) -> tuple[Estimator, list[str]]:
    """Run an estimator over the samples of a simulation; the estimator, and what it refused, one sentence a topic."""
    config, xml = robot.config, robot.urdf_xml
    estimator = Estimator(config, xml) if smooth is None else SmoothedEstimator(config, xml, smooth)
    refused, joints = Refused(), _columns(source, estimator)
    compiler.prepare()
    if start is not None:
        estimator.restore(start)
    for done, sample in enumerate(source.samples):
        if progress is not None and done % _PROGRESS_STRIDE == 0:
            progress(done, len(source.samples))
        for reading in sample.readings:
            if isinstance(reading, JointSample):
                reading = _select(reading, joints)
            try:
                rows.extend(estimator.add(reading))
            except InputError as error:
                refused.note(_topic(config, reading), error)
    rows.extend(estimator.flush())
    return estimator, refused.in_words()


def _columns(source: Simulation, estimator: Estimator) -> list[int]:
    """Where the joints of an estimator are in the arrays of a simulation."""
    if missing := set(estimator.joint_names).difference(source.joint_names):
        raise ConfigError(f"the simulation has no joint {choices(missing)}; it has {choices(source.joint_names)}")
    return [source.joint_names.index(name) for name in estimator.joint_names]


def _select(sample: JointSample, joints: list[int]) -> JointSample:
    """A sample of some joints, in this order."""
    velocity = sample.velocity
    if velocity is not None and len(velocity):
        velocity = velocity[joints]
    return replace(sample, position=sample.position[joints], velocity=velocity, effort=sample.effort[joints])


def _topic(config: Config, reading: Reading) -> str:
    """Topic on which a reading would arrive."""
    if isinstance(reading, WrenchSample):
        return config.feet[reading.foot].wrench_topic
    return config.imu.topic if isinstance(reading, ImuSample) else config.output.joint_states_topic


class _Rows:
    """Collects estimates row by row, as numbers: a minute at 1 kHz takes 100 MB."""

    def __init__(self) -> None:
        self._stamps = array("q")
        self._columns = {name: array("d") for name in (*_OF_JOINTS, *_OF_LAW, *_OF_BASE)}
        self._phases: list[str] = []

    def extend(self, estimates: list[FrictionEstimate]) -> None:
        """Add estimates, oldest first."""
        for estimate in estimates:
            self.add(estimate)

    def add(self, estimate: FrictionEstimate) -> None:
        """Add one estimate."""
        self._stamps.append(estimate.stamp_ns)
        self._phases.append(estimate.phase.name)
        columns = self._columns
        for part, names in ((estimate, _OF_JOINTS), (estimate.law, _OF_LAW), (estimate.base, _OF_BASE)):
            for name in names:
                columns[name].extend(getattr(part, name).ravel().tolist())

    @property
    def stamps(self) -> IntArray:
        """Header stamps, (m,) [ns]."""
        return np.array(self._stamps, dtype=np.int64)

    def result(
        self,
        robot: Robot,
        joint_names: tuple[str, ...],
        truth: FloatArray | None,
        identified: IdentifiedParameters,
        warnings: tuple[str, ...],
    ) -> ReplayResult:
        """All rows as arrays."""
        stamps, n = self.stamps, len(joint_names)
        shapes = {**dict.fromkeys((*_OF_JOINTS, *_OF_LAW), (n,)), **_OF_BASE}
        columns = {name: np.array(column).reshape(-1, *shapes[name]) for name, column in self._columns.items()}
        measured = columns.pop("measured") > 0.0
        return ReplayResult(
            robot=robot,
            joint_names=joint_names,
            time=(stamps - stamps[0]) * 1e-9,
            stamp_ns=stamps,
            contact_phase=np.array(self._phases),
            truth=truth,
            identified=identified,
            warnings=warnings,
            measured=measured,
            **columns,
        )
