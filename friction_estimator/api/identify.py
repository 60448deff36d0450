"""``identify``: friction, inertia and drive parameters from recordings; and what can be done with the result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import Any, Self, Unpack

import numpy as np

from friction_estimator.api.experiments import (
    Experiments,
    Recordings,
    Stage,
    Warn,
    explained,
    is_table,
    read_experiments,
    silent,
    warn_about_data,
)
from friction_estimator.api.replay import ESTIMATE_COLOUR, MAX_CURVE_POINTS, ReplayResult, chosen_joints, replay
from friction_estimator.errors import ConfigError, InputError, extra_packages
from friction_estimator.estimation.pipeline import LEARNING_STAGES
from friction_estimator.estimation.smoothing import SMOOTHING_LAG
from friction_estimator.identification.joint_log import (
    FRICTION_INPUT,
    SIGMA_INPUT,
    ExternalWrench,
    JointLog,
    Payload,
    RobotDescription,
)
from friction_estimator.identification.methods import (
    IdentificationMethod,
    IdentifyOptions,
    choose_method,
    find_method,
    options_of,
)
from friction_estimator.identification.recording.torque_checks import Gain
from friction_estimator.identification.result import Identification, velocity_ranges
from friction_estimator.io.identification_file import read_identification, save_identification
from friction_estimator.io.robot import Robot
from friction_estimator.laws import linear_law_names
from friction_estimator.laws.identified import parameters_sigma
from friction_estimator.linear_algebra import one_blas_thread
from friction_estimator.types import AnyPath, FloatArray


@dataclass(frozen=True, slots=True, repr=False)
class ScoredIdentification(Identification):
    """An identification with its errors on recordings: those that it was made of, or others.

    Attributes
    ----------
    warnings : suspicious data, one sentence each
    """

    warnings: tuple[str, ...] = ()

    @classmethod
    def from_identification(cls, found: Identification, **more: Any) -> Self:
        """Copy an identification into this class; ``more`` are values of the attributes that this class adds."""
        return cls(**{item.name: getattr(found, item.name) for item in fields(Identification)}, **more)

    def report(self, path: AnyPath, title: str = "identification") -> None:
        """Write an HTML page with figures and tables.

        Raises
        ------
        ReportError
            When the file cannot be written.
        """
        from friction_estimator.reports.identification_page import identification_page

        identification_page(self, title).write(path)


@dataclass(frozen=True, slots=True, repr=False)
class IdentificationResult(ScoredIdentification):
    """Result of :func:`identify`: friction laws, bodies, errors and findings.

    Attributes
    ----------
    coupled_motors : motors of the given coupling file, whose friction has their names
    """

    coupled_motors: tuple[str, ...] = ()

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Joints (motors where motors move several joints together), (n)."""
        return self.friction.joint_names

    @property
    def law_names(self) -> tuple[str, ...]:
        """Friction law of every joint, (n)."""
        return self.friction.law_names

    @property
    def values(self) -> FloatArray:
        """Parameters of the friction laws, (n, p), zero beyond the parameters of a law."""
        return self.friction.values

    @property
    def sigma(self) -> FloatArray:
        """Standard deviations of the parameters of the friction laws, (n, p)."""
        return parameters_sigma(self.friction)

    def to_frame(self) -> Any:
        """Parameters as a pandas frame: value, standard deviation and unit. Needs pandas."""
        with extra_packages():
            import pandas as pd

        table = self.parameters
        columns = {"value": table.values, "sigma": table.sigma, "unit": table.units}
        return pd.DataFrame(columns, index=pd.Index(table.names, name="parameter"))

    def plot(self, joints: Sequence[str] | None = None) -> Any:
        """Measured friction and law of these joints (None: all) over the velocity, as a matplotlib figure.

        Raises
        ------
        ConfigError
            When the result has no such joint.
        """
        with extra_packages():
            from matplotlib.figure import Figure

        names = chosen_joints(joints, self.joint_names)
        figure = Figure(figsize=(8.0, 2.6 * len(names)), layout="constrained")
        axes = figure.subplots(len(names), 1, squeeze=False)[:, 0]
        for axis, name in zip(axes, names, strict=True):
            samples = self.samples[self.joint_names.index(name)]
            rows = np.unique(np.linspace(0, samples.velocity.size - 1, MAX_CURVE_POINTS).astype(int))
            for values, colour, label in (
                (samples.friction, "#9aa5b1", "measured"),
                (samples.fitted, ESTIMATE_COLOUR, "law"),
            ):
                axis.plot(samples.velocity[rows], values[rows], ".", color=colour, markersize=2, label=label)
            axis.set(ylabel=f"{name} [N m]")
        axes[0].legend(loc="upper left", fontsize="small")
        axes[-1].set_xlabel("velocity [rad/s]")
        return figure

    @property
    def next_steps(self) -> tuple[str, ...]:
        """How the live node starts from the saved result, one sentence each."""
        return (_live_start(self.law_names), *_note_on_coupling(self.coupled_motors))

    def save(self, path: AnyPath) -> None:
        """Write a parameter file: the live node starts from it; ``report``, ``export`` and ``validate`` read it.

        Raises
        ------
        ConfigError
            When the file cannot be written.
        """
        save_identification(path, self)


@one_blas_thread()
def identify(
    recordings: Recordings,
    robot: AnyPath | Robot | None = None,
    *,
    method: str | None = None,
    law: str | None = None,
    joint_laws: Sequence[str] = (),
    coupling: AnyPath | None = None,
    payloads: Mapping[str, Payload] | None = None,
    joints: Sequence[str] | None = None,
    namespace: str = "",
    kp: Gain | None = None,
    kd: Gain | None = None,
    wrenches: Sequence[ExternalWrench] = (),
    command: str = "",
    stage: Stage | None = None,
    warn: Warn | None = None,
    **options: Unpack[IdentifyOptions],
) -> IdentificationResult:
    """Identify friction, and where need be inertia and drive parameters, of arms, pendulums and walking robots.

    Parameters
    ----------
    recordings : path of a rosbag2, .csv or .npz, or a log of :func:`~friction_estimator.load_recording`; several are
        several experiments with the same robot
    robot : path of a URDF (fixed base), name or YAML of a robot, or a loaded robot; None: the one that a bag names
    method : ``inverse_dynamics``, ``friction_curve`` or ``motor``; None: the first one that data and robot allow
    law : friction law of all joints; None: the law of the robot's live node, else of the method
    joint_laws : exceptions ``joint=law``; the joint may be a pattern such as ``*_knee``
    coupling : YAML with ``robot.coupling``, motors that move several joints together; None: that of the robot
    payloads : bodies that were fixed to the robot, by experiment (name of the recording)
    joints : only these joints, in this order
    namespace : of the topics in bags
    kp, kd : gains of drives that get positions [N m/rad, N m s/rad], of all joints or by pattern: the torque is
        ``kp (q_des - q) - kd dq`` with the column ``command/<joint>``; None: the torque was recorded
    wrenches : where measured external forces act, such as those on feet; ``external/<joint>`` is a known torque
    command : command line, for the record
    stage : called with the title of each long piece of work; returns a context manager of its progress
    warn : called with every warning about the data as it is found
    options : of the method, see :class:`~friction_estimator.identification.methods.IdentifyOptions`

    Raises
    ------
    FrictionEstimatorError
        When the data do not suffice, or an option does not fit; the message names the valid choices.

    Examples
    --------
    >>> import friction_estimator as fe, numpy as np
    >>> time = np.linspace(0.0, 20.0, 4001)
    >>> velocity = 1.5 * np.sin(time) + np.sin(2.6 * time)
    >>> friction = 0.8 * np.sign(velocity) + 0.3 * velocity + 0.01 * np.sin(37.0 * time)
    >>> position = -1.5 * np.cos(time) - np.cos(2.6 * time) / 2.6
    >>> np.savez("/tmp/joint.npz", time=time, position=position, velocity=velocity, friction=friction)
    >>> result = fe.identify("/tmp/joint.npz", law="coulomb_viscous")
    >>> result.values.round(1)
    array([[0.8, 0.3]])
    """
    warnings: list[str] = []
    note, working = warning_collector(warnings, warn), stage or silent
    experiments = read_experiments(
        recordings, robot, working, note, joints=joints, coupling=coupling, payloads=payloads, namespace=namespace,
        kp=kp, kd=kd, wrenches=wrenches,
    )  # fmt: skip
    suspicions = warn_about_data(experiments, note)
    used = experiments.robot
    arm = None if used is None else RobotDescription(used.urdf_xml, used.config.robot.fixed_base)
    name, reason = (method, f"method {method}, as given") if method else choose_method(experiments.logs, arm)
    keywords, law_choice = _keywords(find_method(name), experiments, law, tuple(joint_laws), options)
    fitted = options_of(name, keywords)  # wrong options are refused before any long work
    measures = name == "friction_curve"
    logs, notes = measured_friction(experiments, namespace, working, note) if measures else (experiments.logs, ())
    with working(f"identifying, method {name}") as progress, explained(suspicions):
        found = find_method(name).run(logs, arm, fitted, progress, note)
    found = _with_record(found, command, (*experiments.notes, reason, *law_choice, *notes))
    joint_names = experiments.logs[0].joint_names
    motors = tuple(name for name in found.friction.joint_names if name not in joint_names)
    return IdentificationResult.from_identification(
        found, warnings=tuple(warnings), coupled_motors=() if coupling is None else motors
    )


def _live_start(law_names: tuple[str, ...]) -> str:
    copy = "a copy of this file (parameter identified_parameters: the node also writes there at its end)"
    nonlinear = sorted(set(law_names) - set(linear_law_names()))
    if nonlinear:
        others = sorted(set(law_names) - set(nonlinear))
        rest = f"; for the other joints identifier.joint_laws must name {', '.join(others)}" if others else ""
        return (
            f"the live node starts from {copy} and approximates the curve of {', '.join(nonlinear)} by the linear law "
            f"of the joint{rest}"
        )
    common = max(sorted(set(law_names)), key=law_names.count)
    rest = " and identifier.joint_laws for the others" if set(law_names) != {common} else ""
    return f"the live node starts from {copy} with identifier.law: {common}{rest}"


def _note_on_coupling(motors: Sequence[str]) -> tuple[str, ...]:
    """Sentence on the coupling that the YAML of the live node needs; none without coupled motors."""
    if not motors:
        return ()
    return (
        f"the live node uses the friction of {', '.join(motors)} where the robot's YAML has the same coupling "
        "(robot.coupling with joints, motors and matrix); without it, these joints start without parameters",
    )


def load_identification(path: AnyPath) -> IdentificationResult:
    """Read the result of an earlier identification, or the parameters that ``replay`` or the live node has written.

    Raises
    ------
    ConfigError
        When the file cannot be read, or is not a parameter file.
    """
    return IdentificationResult.from_identification(read_identification(path))


def warning_collector(warnings: list[str], warn: Warn | None) -> Warn:
    """Function that appends a warning to the list ``warnings``, and passes it to ``warn`` if that is not None."""

    def note(text: str) -> None:
        warnings.append(text)
        if warn is not None:
            warn(text)

    return note


def _keywords(
    method: IdentificationMethod,
    experiments: Experiments,
    law: str | None,
    joint_laws: tuple[str, ...],
    options: Mapping[str, Any],
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """All keywords of the method: those that were given, and laws and coupling of the robot; and why that law."""
    keywords, robot, reason = dict(options), experiments.robot, ""
    if "joint_laws" in method.places:
        keywords["law"] = law or ("coulomb_viscous" if robot is None else robot.config.friction_law)
        keywords["joint_laws"] = joint_laws
        if law is None and not joint_laws:
            keywords["joint_laws"] = () if robot is None else robot.config.identifier.joint_laws
            origin = "the simplest one" if robot is None else "that of the robot's live node"
            reason = f"law {keywords['law']}: {origin}"
    elif joint_laws:
        raise ConfigError(f"the method {method.name} takes one law for all motors: leave out {', '.join(joint_laws)}")
    elif law is not None:
        keywords["law"] = law
    if experiments.coupling is not None:
        keywords["coupling"] = experiments.coupling
    return keywords, (reason,) if reason else ()


def _with_record(found: Identification, command: str, decisions: tuple[str, ...]) -> Identification:
    """The result with what was decided before the method ran, and with the speeds that identified the friction."""
    provenance = replace(found.provenance, command=command, choices=(*decisions, *found.provenance.choices))
    friction = replace(found.friction, velocity_range=velocity_ranges(found.samples))
    return replace(found, friction=friction, provenance=provenance)


def measured_friction(
    experiments: Experiments, namespace: str, stage: Stage, warn: Warn
) -> tuple[tuple[JointLog, ...], tuple[str, ...]]:
    """The logs with the friction that the estimator measures in their bags, and what was done, one sentence each.

    Logs that hold friction stay as they are; without a robot all do.

    Raises
    ------
    InputError
        When a log holds no friction and is no bag.
    """
    robot = experiments.robot
    if robot is None or all(FRICTION_INPUT in log.inputs for log in experiments.logs):
        return experiments.logs, ()
    smooth = SMOOTHING_LAG if robot.config.observer in LEARNING_STAGES else None
    measured = []
    for path, log in zip(experiments.paths, experiments.logs, strict=True):
        if FRICTION_INPUT in log.inputs:
            measured.append(log)
            continue
        if path is None or is_table(path):
            raise InputError(
                f"{path or log.name} holds no measured friction, 'friction/<joint>', and is no bag: friction of a "
                "walking robot is estimated from a bag with joint states, IMU and foot wrenches"
            )
        with stage(f"estimating friction of {path.name}") as progress:
            found = replay(path, robot, smooth=smooth, namespace=namespace, progress=progress)
        for text in found.warnings:
            warn(f"{log.name}: {text}")
        measured.append(_with_friction(log, found))
    ahead = "" if smooth is None else f" --smooth {smooth:g}"
    return tuple(measured), (
        f"friction measured by the observer {robot.config.observer!r}, as `replay{ahead}` does: "
        "keep its output with that command to identify more than once",
    )


def _with_friction(log: JointLog, found: ReplayResult) -> JointLog:
    """The log at the samples of the estimator, with the friction that was measured, NaN where it was not."""
    inputs = {FRICTION_INPUT: found.friction, SIGMA_INPUT: found.sigma}
    measured = {kind: np.where(found.measured, values, np.nan) for kind, values in inputs.items()}
    whole = replace(
        log, joint_names=found.joint_names, time=found.time, position=found.position, velocity=found.velocity,
        effort=found.effort, inputs=MappingProxyType(measured),
    )  # fmt: skip
    return whole.select(log.joint_names)
