"""Writing a file such that a crash leaves the old one or the new one, never half of it."""

from __future__ import annotations

import os
from pathlib import Path


def write_atomically(target: Path, text: str) -> None:
    """Replace a file; line ends are written as they stand in the text.

    Raises
    ------
    OSError
        When it cannot be written; the old file is still there then.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    target = target.resolve()
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("w", encoding="utf-8", newline="") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
    folder = os.open(target.parent, os.O_RDONLY)  # the rename itself must reach the disk too
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
