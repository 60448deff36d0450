"""Frames of a robot with its friction, and their view in a thread with a bounded queue."""

from __future__ import annotations

import queue
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pinocchio as pin
from scipy.spatial.transform import Rotation

from friction_estimator.errors import ConfigError
from friction_estimator.io.robot import Robot
from friction_estimator.robot.model import RobotModel
from friction_estimator.robot.urdf import checked_urdf
from friction_estimator.types import FloatArray, FrictionEstimate, IntArray

VIEWS = {"web": "WebDisplay", "rerun": "RerunDisplay", "foxglove": "FoxgloveDisplay"}
"""Class of each view, in the module ``<name>_view``."""
_RECORDING_VIEW = "rerun"
"""The view that writes recordings."""
_PERIOD_NS = 50_000_000
"""Time between two drawn estimates [ns]."""
_END_TIMEOUT = 5.0
"""Longest wait for the last frame [s]."""
_MAX_WAITING = 20
"""Frames that wait at most: one second."""
_COLD, _HOT = np.array([40.0, 100.0, 200.0]), np.array([220.0, 40.0, 40.0])
"""Colours (red, green, blue) of a line without friction, and of the line with the largest friction."""


@dataclass(frozen=True, slots=True)
class ViewFrame:
    """Robot and friction at one instant of a run, as a view draws them."""

    time: float  # since the first joint state [s]
    joint_names: tuple[str, ...]  # (n)
    friction: FloatArray  # (n,) estimate [N m]; NaN while unknown
    sigma: FloatArray  # (n,) its standard deviation [N m]
    truth: FloatArray  # (n,) true friction [N m]; NaN where unknown
    phase: str  # contact phase
    base_position: FloatArray  # (3,) of the base in the world [m]
    base_quaternion: FloatArray  # (4,) x, y, z, w
    segments: FloatArray  # (s, 2, 3) ends of the lines of the robot in the world [m]
    segment_joints: tuple[int, ...]  # (s,) index of the joint whose friction colours a line; -1 for none
    events: tuple[str, ...] = ()  # new since the last frame, one sentence each

    def colors(self) -> IntArray:
        """Colours of the lines, (s, 3) from 0 to 255, by the size of the friction against the largest one."""
        size = np.nan_to_num(np.abs(np.append(self.friction, 0.0)))
        strength = size[list(self.segment_joints)] / max(float(size.max()), 1e-9)
        return np.rint(_COLD + strength[:, None] * (_HOT - _COLD)).astype(np.int64)


def json_numbers(values: FloatArray) -> Any:
    """Nested lists of an array, with four decimals; None for NaN and infinity, which JSON does not have."""
    numbers = np.round(values, 4).astype(object)
    numbers[~np.isfinite(values)] = None
    return numbers.tolist()


class Skeleton:
    """A robot as lines from joint to joint, and to the feet.

    Parameters
    ----------
    robot : configuration and URDF
    joint_names : (n) joints of the frames; all others stay at zero
    """

    def __init__(self, robot: Robot, joint_names: tuple[str, ...]) -> None:
        xml, fixed_base = checked_urdf(robot.urdf_xml), robot.config.robot.fixed_base
        self._model = (
            pin.buildModelFromXML(xml) if fixed_base else pin.buildModelFromXML(xml, pin.JointModelFreeFlyer())
        )
        self.joint_names = joint_names
        self._data, self._q = self._model.createData(), pin.neutral(self._model)
        self._fixed_base = fixed_base
        self._pin_joints = [self._model.joints[self._model.getJointId(name)] for name in joint_names]
        self._feet = [self._model.getFrameId(foot.frame) for foot in robot.config.feet]
        first = 1 if fixed_base else 2
        moved = [joint for joint in range(first, self._model.njoints) if self._model.parents[joint] >= first - 1]
        self._lines = [(self._model.parents[joint], joint) for joint in moved]
        index = {name: number for number, name in enumerate(joint_names)}
        names = [self._model.names[parent] for parent, _ in self._lines]
        names += [self._model.names[self._model.frames[foot].parentJoint] for foot in self._feet]
        self.segment_joints = tuple(index.get(name, -1) for name in names)

    def segments(self, position: FloatArray, base_position: FloatArray, base_quaternion: FloatArray) -> FloatArray:
        """Ends of the lines (s, 2, 3) [m] at joint positions (n,), base position (3,) and orientation (x, y, z, w)."""
        for joint, value in zip(self._pin_joints, np.nan_to_num(position).tolist(), strict=True):
            self._q[joint.idx_q : joint.idx_q + joint.nq] = [value] if joint.nq == 1 else [np.cos(value), np.sin(value)]
        if not self._fixed_base:
            self._q[:3], self._q[3:7] = base_position, base_quaternion
        pin.framesForwardKinematics(self._model, self._data, self._q)
        places = [placement.translation for placement in self._data.oMi]
        lines = [(places[parent], places[joint]) for parent, joint in self._lines]
        frames = self._model.frames
        lines += [(places[frames[foot].parentJoint], self._data.oMf[foot].translation) for foot in self._feet]
        return np.array(lines).reshape(-1, 2, 3)

    def frame(
        self,
        time: float,
        position: FloatArray,
        pose: tuple[FloatArray, FloatArray],
        signals: tuple[FloatArray, FloatArray, FloatArray],
        phase: str,
        events: tuple[str, ...] = (),
    ) -> ViewFrame:
        """Frame of the robot and its friction at one instant.

        Parameters
        ----------
        time : since the first joint state [s]
        position : (n,) joint positions [rad or m]
        pose : position (3,) of the base in the world [m], and its orientation (4,) as quaternion x, y, z, w
        signals : friction, its standard deviation and the true friction, (n,) each [N m]; NaN while unknown
        phase : name of the contact phase
        events : new since the last frame, one sentence each
        """
        segments = self.segments(position, *pose)
        return ViewFrame(time, self.joint_names, *signals, phase, *pose, segments, self.segment_joints, events)


class Display(Protocol):
    """Where frames are drawn."""

    address: str
    """What to open, in words."""
    keeps: bool
    """Whether frames can be looked at later: others are shown in real time."""

    def draw(self, frame: ViewFrame) -> None:
        """Draw one frame."""
        ...

    def close(self) -> None:
        """Close the server or file of the display."""
        ...


def make_display(name: str, port: int, file: Path | None = None) -> Display:
    """Open a view.

    Parameters
    ----------
    name : one of :data:`VIEWS`
    port : of the local server that a browser or viewer opens; 0: a free one
    file : recording (.rrd) that is written in place of a server; for ``rerun`` only

    Raises
    ------
    ConfigError
        When the port is in use, or the view writes no file.
    """
    make: Callable[..., Display] = getattr(import_module(f"friction_estimator.views.{name}_view"), VIEWS[name])
    if file is None:
        return make(usable_port(port))
    if name != _RECORDING_VIEW:
        raise ConfigError(f"the view {name!r} writes no file: leave it out, or choose the view {_RECORDING_VIEW!r}")
    return make(port, file)


def usable_port(port: int) -> int:
    """The port, or a free one for 0.

    Raises
    ------
    ConfigError
        When it is in use.
    """
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or error
            raise ConfigError(
                f"the view cannot use port {port} of this machine: {reason}; choose another one (--view-port, 0: a "
                "free one), or end the program that uses it"
            ) from None
        return int(probe.getsockname()[1])


class LiveView:
    """Draws frames in a thread. A frame for which there is no room is dropped and counted.

    Parameters
    ----------
    display : where they are drawn

    Attributes
    ----------
    dropped : number of dropped frames
    """

    def __init__(self, display: Display) -> None:
        self.display = display
        self.dropped = 0
        self._frames: queue.Queue[ViewFrame | None] = queue.Queue(_MAX_WAITING)
        self._thread = threading.Thread(target=self._draw, name="view", daemon=True)

    def __enter__(self) -> LiveView:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._frames.put(None, timeout=_END_TIMEOUT)
            self._thread.join(_END_TIMEOUT)
        except queue.Full:  # the display hangs; its thread ends with the process
            pass
        self.display.close()

    def send(self, frame: ViewFrame) -> None:
        """Hand over a frame; returns at once."""
        try:
            self._frames.put_nowait(frame)
        except queue.Full:
            self.dropped += 1

    def _draw(self) -> None:
        while (frame := self._frames.get()) is not None:
            self.display.draw(frame)


class EstimateView:
    """Draws an estimate every 50 ms of the recording.

    Parameters
    ----------
    robot : configuration and URDF
    view : that draws
    """

    def __init__(self, robot: Robot, view: LiveView) -> None:
        self._skeleton = Skeleton(robot, RobotModel(robot.config, robot.urdf_xml).joint_names)
        self._view = view
        self._first_ns = self._next_ns = 0
        self._started = 0.0

    def show(self, estimate: FrictionEstimate) -> None:
        """Draw the estimate if the last one drawn is 50 ms old."""
        if estimate.stamp_ns < self._next_ns:
            return
        if not self._first_ns:
            self._first_ns, self._started = estimate.stamp_ns, time.monotonic()
        self._next_ns = estimate.stamp_ns + _PERIOD_NS
        base = estimate.base
        pose = base.position_base_in_world, Rotation.from_matrix(base.rotation_base_to_world).as_quat()
        elapsed = 1e-9 * (estimate.stamp_ns - self._first_ns)
        if not self._view.display.keeps:
            time.sleep(max(0.0, self._started + elapsed - time.monotonic()))
        signals = estimate.friction, estimate.sigma, np.full(len(estimate.friction), np.nan)
        self._view.display.draw(self._skeleton.frame(elapsed, estimate.position, pose, signals, estimate.phase.name))
