"""Recorded bags of a fleet: found by path, glob or URL, hashed, and copied to this machine while they are used."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from fsspec.core import url_to_fs
from fsspec.implementations.local import LocalFileSystem

from friction_estimator.errors import BagError, ConfigError

_STORAGE = (".mcap", ".db3")
_METADATA = "metadata.yaml"
_BLOCK = 1 << 20
_CHECKSUMS = ("md5Hash", "content_md5", "checksum", "ETag", "etag")
"""Names under which object stores keep a checksum of a file; those of the content alone first."""


@dataclass(frozen=True, slots=True)
class Bag:
    """One recorded bag.

    Attributes
    ----------
    url : absolute path or URL of its folder or its only file
    size : of its files [byte]
    """

    url: str
    size: int


def filesystem(url: str) -> tuple[Any, str]:
    """File system of a path or URL (fsspec), and the path in it.

    Raises
    ------
    ConfigError
        When no installed package reads such URLs.
    """
    try:
        fs, path = url_to_fs(url)
    except (ImportError, ValueError) as error:
        raise ConfigError(f"cannot read {url}: {error}") from None
    fs.invalidate_cache()  # workers of a cluster live longer than what is in the store
    return fs, path


def find_bags(sources: Iterable[str]) -> tuple[Bag, ...]:
    """All bags below paths, globs or URLs, each once, the largest first.

    A folder with ``metadata.yaml`` is one bag; any other storage file is one bag. Hidden folders are left out:
    they hold bags that are still being written.

    Raises
    ------
    BagError
        When there is no bag at one of the sources.
    ConfigError
        When no installed package reads such URLs.
    """
    found: dict[str, Bag] = {}
    for source in sources:
        fs, path = filesystem(source)
        places = fs.glob(path) if any(letter in path for letter in "*?[") else [path]
        bags = [bag for place in places for bag in _bags_below(fs, place)]
        if not bags:
            raise BagError(f"there is no bag at {source}: no folder with {_METADATA} and no .mcap or .db3 file")
        found.update((bag.url, bag) for bag in bags)
    return tuple(sorted(found.values(), key=lambda bag: (-bag.size, bag.url)))


def _bags_below(fs: Any, place: str) -> Iterator[Bag]:
    files = {
        path: int(info.get("size") or 0)
        for path, info in fs.find(place, detail=True).items()
        if not any(part.startswith(".") for part in PurePosixPath(path).relative_to(PurePosixPath(place)).parts)
    }
    folders = {str(PurePosixPath(path).parent) for path in files if PurePosixPath(path).name == _METADATA}
    sizes: dict[str, int] = dict.fromkeys(folders, 0)
    for path, size in files.items():
        parent = str(PurePosixPath(path).parent)
        if parent in folders and path != place:
            sizes[parent] += size
        elif path.endswith(_STORAGE):
            sizes[path] = size
    local = isinstance(fs, LocalFileSystem)
    for path, size in sizes.items():
        yield Bag(path if local else fs.unstrip_protocol(path), size)


def content_hash(url: str) -> str:
    """Hash of the content of a bag, whatever its name.

    For remote files the checksum that their store keeps is used where there is one; any other file is read.
    """
    fs, path = filesystem(url)
    digest = hashlib.sha256()  # in hardware on most processors
    for name, info in sorted(fs.find(path, detail=True).items()):
        known = next((str(info[key]) for key in _CHECKSUMS if info.get(key)), None)
        if known is not None:
            digest.update(known.encode())
            continue
        with fs.open(name, "rb") as stream:
            while block := stream.read(_BLOCK):
                digest.update(block)
    return digest.hexdigest()


@contextmanager
def local_copy(url: str, folder: str | None = None) -> Iterator[Path]:
    """Path of a bag on this machine. A remote bag is copied, and the copy deleted at the end.

    A worker never holds more than one copy. What a killed worker leaves is in its own scratch folder, which Dask
    deletes.

    Parameters
    ----------
    url : of the bag
    folder : in which the copy is made; None: the folder for temporary files
    """
    fs, path = filesystem(url)
    if isinstance(fs, LocalFileSystem):
        yield Path(path)
        return
    with tempfile.TemporaryDirectory(prefix="bag_", dir=folder) as scratch:
        origin = PurePosixPath(path)
        target = Path(scratch) / origin.name
        for name in fs.find(path):
            place = target / PurePosixPath(name).relative_to(origin)
            place.parent.mkdir(parents=True, exist_ok=True)
            fs.get_file(name, str(place))
        if not target.exists():
            raise BagError(f"there is no bag at {url}")
        yield target
