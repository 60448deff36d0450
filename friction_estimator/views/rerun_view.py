"""Rerun: the robot in 3D, friction of every joint with its band, phases and events; live in a browser, or as a file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import rerun as rr
import rerun.blueprint as rrb

from friction_estimator.types import FloatArray
from friction_estimator.views.live_view import ViewFrame, usable_port

_ESTIMATE, _BAND, _TRUTH = (31, 95, 191), (150, 180, 230), (201, 42, 42)  # red, green, blue


class RerunDisplay:
    """Logs frames to Rerun.

    Parameters
    ----------
    port : of the page with Rerun's web viewer; the page takes the data from the port after it
    file : recording to write in place of serving the page
    """

    keeps = True

    def __init__(self, port: int, file: Path | None = None) -> None:
        self._recording = rr.RecordingStream("friction_estimator")
        if file is not None:
            self._recording.save(file)
            self.address = str(file)
        else:
            stream = self._recording.serve_grpc(grpc_port=usable_port(port + 1))
            rr.serve_web_viewer(web_port=port, open_browser=False, connect_to=stream)
            self.address = f"http://localhost:{port}/?url={stream.replace('://', '%3A%2F%2F').replace('+', '%2B')}"
        self._phase = ""
        self._joint_names: tuple[str, ...] = ()
        self._largest: FloatArray = np.zeros(0)

    def draw(self, frame: ViewFrame) -> None:
        """Log one frame."""
        log = self._recording.log
        self._recording.set_time("time", duration=frame.time)
        if frame.joint_names != self._joint_names:
            self._arrange(frame)
        log("robot", rr.LineStrips3D(frame.segments, colors=frame.colors().astype(np.uint8), radii=0.012))
        self._largest = np.fmax(self._largest, np.abs(frame.friction))
        spread = np.where(frame.sigma < self._largest, 2.0 * frame.sigma, np.nan)  # else the band hides the friction
        low, high = frame.friction - spread, frame.friction + spread
        for name, *values in zip(frame.joint_names, frame.truth, low, high, frame.friction, strict=True):
            for curve, value in zip(("truth", "lower", "upper", "estimate"), values, strict=True):
                if np.isfinite(value):
                    log(f"friction/{name}/{curve}", rr.Scalars(float(value)))
        if frame.phase != self._phase:
            self._phase = frame.phase
            log("contact_phase", rr.TextLog(frame.phase))
        for text in frame.events:
            log("events", rr.TextLog(text))

    def close(self) -> None:
        """Send the frames that are still buffered."""
        self._recording.flush()

    def _arrange(self, frame: ViewFrame) -> None:
        """Styles of the curves, and one plot a joint at the right of the robot, which the camera sees whole."""
        joint_names, ends = frame.joint_names, frame.segments.reshape(-1, 3)
        middle, size = ends.mean(axis=0), float(np.ptp(ends, axis=0).max())
        eye = rrb.EyeControls3D(position=middle + np.array([1.5, -1.5, 0.7]) * size, look_target=middle)
        self._joint_names, self._largest = joint_names, np.zeros(len(joint_names))
        styles = {"estimate": _ESTIMATE, "lower": _BAND, "upper": _BAND, "truth": _TRUTH}
        for name in joint_names:
            for curve, ink in styles.items():
                line = rr.SeriesLines(colors=[ink], names=[curve], widths=[1.5])
                self._recording.log(f"friction/{name}/{curve}", line, static=True)
        legend = rrb.PlotLegend(visible=False)
        plots = [
            rrb.TimeSeriesView(origin=f"friction/{name}", name=f"{name} [N m]", plot_legend=legend)
            for name in joint_names
        ]
        robot = rrb.Vertical(
            rrb.Spatial3DView(origin="/", contents="robot", name="robot", eye_controls=eye),
            rrb.TextLogView(origin="/", contents=["contact_phase", "events"], name="phases and events"),
            row_shares=[3, 1],
        )
        layout = rrb.Horizontal(robot, rrb.Grid(*plots), column_shares=[1, 2])
        self._recording.send_blueprint(rrb.Blueprint(layout, collapse_panels=True))
