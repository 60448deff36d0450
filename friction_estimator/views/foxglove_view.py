"""Foxglove: a WebSocket server with the topics of the live node as JSON, and the robot as a scene."""

from __future__ import annotations

import foxglove
from foxglove import channels, messages

from friction_estimator.types import FloatArray
from friction_estimator.views.live_view import ViewFrame, json_numbers

_WORLD, _BASE = "odom", "base_link"
_TEXT, _NUMBERS = {"type": "string"}, {"type": "array", "items": {"type": "number"}}
_STRING = {"type": "object", "title": "String", "properties": {"data": _TEXT}}
_NAMES = {"type": "array", "items": _TEXT}
_JOINT_STATE = {"type": "object", "title": "JointState", "properties": {"name": _NAMES, "effort": _NUMBERS}}


class FoxgloveDisplay:
    """Serves frames to Foxglove and viewers like it; ``config/foxglove/friction.json`` is a layout.

    Parameters
    ----------
    port : of the WebSocket
    """

    keeps = False

    def __init__(self, port: int) -> None:
        self._server = foxglove.start_server(name="friction_estimator", port=port, message_backlog_size=64)
        self.address = f"Foxglove, connection ws://localhost:{port}"
        self._scene, self._base = channels.SceneUpdateChannel("/robot"), channels.FrameTransformChannel("/tf")
        self._log = channels.LogChannel("/events")
        self._joint_channels = {
            topic: foxglove.Channel(topic, schema=_JOINT_STATE)
            for topic in ("/joint_friction", "/joint_friction/sigma", "/ground_truth/joint_friction")
        }
        self._phase = foxglove.Channel("/contact_phase", schema=_STRING)

    def draw(self, frame: ViewFrame) -> None:
        """Publish one frame under its own time."""
        nanoseconds = round(1e9 * frame.time)
        stamp = messages.Timestamp(*divmod(nanoseconds, 1_000_000_000))
        signals = (frame.friction, frame.sigma, frame.truth)
        for channel, values in zip(self._joint_channels.values(), signals, strict=True):
            channel.log(_joint_state(frame.joint_names, values), log_time=nanoseconds)
        self._phase.log({"data": frame.phase}, log_time=nanoseconds)
        self._base.log(_base(frame, stamp), log_time=nanoseconds)
        self._scene.log(_scene(frame, stamp), log_time=nanoseconds)
        for text in frame.events:
            self._log.log(messages.Log(timestamp=stamp, level=messages.LogLevel.Warning, message=text))

    def close(self) -> None:
        """End the server."""
        self._server.stop()


def _joint_state(names: tuple[str, ...], effort: FloatArray) -> dict[str, object]:
    """The fields of a sensor_msgs/JointState that the topics of the node fill."""
    return {"name": list(names), "effort": json_numbers(effort)}


def _base(frame: ViewFrame, stamp: messages.Timestamp) -> messages.FrameTransform:
    """Pose of the base, which the camera of the layout follows."""
    return messages.FrameTransform(
        timestamp=stamp,
        parent_frame_id=_WORLD,
        child_frame_id=_BASE,
        translation=messages.Vector3(**dict(zip("xyz", frame.base_position.tolist(), strict=True))),
        rotation=messages.Quaternion(**dict(zip("xyzw", frame.base_quaternion.tolist(), strict=True))),
    )


def _scene(frame: ViewFrame, stamp: messages.Timestamp) -> messages.SceneUpdate:
    """One line per link, coloured by the friction of its joint."""
    pairs = zip(frame.segments.tolist(), (frame.colors() / 255.0).tolist(), strict=True)
    lines = [
        messages.LinePrimitive(
            type=messages.LinePrimitiveLineType.LineStrip,
            thickness=0.025,
            points=[messages.Point3(x=x, y=y, z=z) for x, y, z in ends],
            color=messages.Color(r=ink[0], g=ink[1], b=ink[2], a=1.0),
        )
        for ends, ink in pairs
    ]
    return messages.SceneUpdate(
        entities=[messages.SceneEntity(timestamp=stamp, frame_id=_WORLD, id="robot", lines=lines)]
    )
