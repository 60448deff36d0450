"""A page as a browser draws it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")


def drawn_page(page: Path, folder: Path, milliseconds: int) -> str:
    """What headless Chromium has made of a page after so much of its own time; nothing may be said on its console."""
    process = subprocess.run(
        [
            str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
            "--disable-background-networking", "--disable-component-update", "--disable-sync",
            f"--user-data-dir={folder / 'profile'}", "--window-size=1280,1000",
            f"--virtual-time-budget={milliseconds}", "--enable-logging=stderr", "--dump-dom", page.as_uri(),
        ],
        capture_output=True, text=True, timeout=180, check=True,
    )  # fmt: skip
    assert [line for line in process.stderr.splitlines() if "CONSOLE" in line] == []
    return process.stdout
