"""Data sets on disk: a folder of ``.npz`` files with a JSON index that has their SHA-256 hashes.

    FOLDER/index.json    version, robot, settings, and file, hash and number of samples of each shard
    FOLDER/0000.npz      one recording: inputs, residual, external, true_external, starts, period

A data set grows shard by shard. One that was interrupted is continued: what is there stays if its hash is right.
"""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from friction_estimator.errors import LearningError
from friction_estimator.io.documents import write_atomically
from friction_estimator.learning.network import RobotIdentity
from friction_estimator.learning.recording import SignalRecording

_INDEX = "index.json"
_ARRAYS = ("inputs", "residual", "external", "true_external", "starts")


class Dataset:
    """A data set, opened for reading and growing.

    Parameters
    ----------
    folder : of the data set; made at the first shard
    identity : robot that it must belong to
    settings : how its shards are made; None: as they are

    Raises
    ------
    LearningError
        When the folder holds a data set of another robot or other settings, or its index cannot be read.
    """

    def __init__(self, folder: Path, identity: RobotIdentity, settings: Mapping[str, Any] | None = None) -> None:
        self.folder, self.identity = folder, identity
        self.settings: dict[str, Any] = dict(settings or {})
        self.shards: dict[str, dict[str, Any]] = {}
        if (folder / _INDEX).exists():
            self._read_index(settings)
        elif settings is None:
            raise LearningError(f"{folder} is no data set: it has no {_INDEX}")

    def is_complete(self, name: str) -> bool:
        """Whether a shard is there, with the right hash; an empty one, whose recording failed, counts."""
        shard = self.shards.get(name)
        return shard is not None and (not shard["samples"] or _sha256(self.folder / name) == shard["sha256"])

    def add(self, name: str, source: str, samples: int, reason: str = "") -> None:
        """List a shard that :func:`write_shard` has written; ``reason``: why there are no samples."""
        digest = _sha256(self.folder / name) if samples else ""
        self.shards[name] = {"source": source, "samples": samples, "sha256": digest, "reason": reason}
        document = {"identity": dataclasses.asdict(self.identity), "settings": self.settings}
        document["shards"] = dict(sorted(self.shards.items()))
        write_atomically(self.folder / _INDEX, json.dumps(document, indent=1) + "\n")

    @property
    def sample_count(self) -> int:
        """Samples of all shards."""
        return sum(shard["samples"] for shard in self.shards.values())

    def recordings(self) -> Iterator[SignalRecording]:
        """All recordings.

        Raises
        ------
        LearningError
            When a shard is missing or not what was written.
        """
        for name, shard in sorted(self.shards.items()):
            if not shard["samples"]:
                continue
            path = self.folder / name
            if _sha256(path) != shard["sha256"]:
                raise LearningError(f"{path} is missing or damaged (SHA-256): run simulate --dataset again")
            yield read_shard(path)

    def _read_index(self, settings: Mapping[str, Any] | None) -> None:
        path = self.folder / _INDEX
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
            identity, self.shards, found = document["identity"], document["shards"], document["settings"]
        except (ValueError, KeyError, TypeError) as error:
            raise LearningError(f"{path} is not the index of a data set: {error}") from None
        self.identity.check(identity, f"the data set {self.folder}")
        if settings is not None and found != self.settings:
            different = {name for name in {*found, *settings} if found.get(name) != settings.get(name)}
            raise LearningError(
                f"{self.folder} holds a data set with another {', '.join(sorted(different))}: choose another folder"
            )
        self.settings = found


def write_shard(path: Path, recording: SignalRecording) -> None:
    """Write a recording; an interruption leaves no half file."""
    arrays = {name: getattr(recording, name) for name in _ARRAYS if getattr(recording, name) is not None}
    content = io.BytesIO()
    np.savez(content, period=recording.period, **arrays)
    write_atomically(path, content.getvalue())


def read_shard(path: Path) -> SignalRecording:
    """Read a recording. Raises LearningError when it is none."""
    try:
        with np.load(path, allow_pickle=False) as arrays:
            values: dict[str, Any] = {name: arrays[name] for name in _ARRAYS if name in arrays}
            return SignalRecording(**{"true_external": None, **values}, period=float(arrays["period"]))
    except (OSError, ValueError, KeyError, TypeError, BadZipFile) as error:
        raise LearningError(f"{path} is not a shard of a data set: {error}") from None


def _sha256(path: Path) -> str:
    """Hash of a file, empty where there is none."""
    if not path.is_file():
        return ""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
