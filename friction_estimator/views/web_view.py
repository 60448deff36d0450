"""A page in the browser: standard library only, nothing is loaded from a network."""

from __future__ import annotations

import json
import queue
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import Any

from friction_estimator.views.live_view import ViewFrame, json_numbers

_MAX_WAITING = 40
"""Frames that wait for a browser at most; the oldest are dropped."""


class WebDisplay:
    """Serves the page, and streams frames to it as server-sent events.

    Parameters
    ----------
    port : of the server on this machine
    """

    keeps = False

    def __init__(self, port: int) -> None:
        self._clients: set[queue.Queue[bytes | None]] = set()
        self._server = ThreadingHTTPServer(("127.0.0.1", port), self._handler())
        self._server.daemon_threads = True
        self.address = f"http://localhost:{port}/"
        threading.Thread(target=self._server.serve_forever, name="web view", daemon=True).start()

    def draw(self, frame: ViewFrame) -> None:
        """Send a frame to every browser that has the page open."""
        data = {
            "time": round(frame.time, 3),
            "names": frame.joint_names,
            "friction": json_numbers(frame.friction),
            "sigma": json_numbers(frame.sigma),
            "truth": json_numbers(frame.truth),
            "phase": frame.phase.replace("_", " "),
            "segments": json_numbers(frame.segments.reshape(-1, 6)),
            "colors": frame.colors().tolist(),
            "events": frame.events,
        }
        message = f"data: {json.dumps(data)}\n\n".encode()
        for client in tuple(self._clients):
            if client.full():
                client.get_nowait()
            client.put_nowait(message)

    def close(self) -> None:
        """Tell the browsers that the run is over, and end the server."""
        for client in tuple(self._clients):
            if client.full():
                client.get_nowait()
            client.put_nowait(b"event: over\ndata: {}\n\n")
            client.put_nowait(None) if not client.full() else None
        self._server.shutdown()
        self._server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        clients = self._clients

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:  # noqa: N802 - the name is that of http.server
                if self.path == "/":
                    self._reply("text/html; charset=utf-8", (files(__package__) / "page.html").read_bytes())
                elif self.path == "/frames":
                    self._stream()
                else:
                    self.send_error(404)

            def _reply(self, kind: str, body: bytes) -> None:
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def _stream(self) -> None:
                waiting: queue.Queue[bytes | None] = queue.Queue(_MAX_WAITING)
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream")
                self.send_header("Cache-Control", "no-store")
                self.end_headers()
                clients.add(waiting)
                try:
                    while (message := waiting.get()) is not None:
                        self.wfile.write(message)
                        self.wfile.flush()
                except OSError:  # the browser has gone
                    pass
                finally:
                    clients.discard(waiting)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        return Handler
