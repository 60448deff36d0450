"""Faults of files: parameters, YAML, URDF, tables, bags, names. A function per row lists what is wrong."""

from __future__ import annotations

import itertools
import math
import resource
import sqlite3
import stat
import struct
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
import zipfile
from collections.abc import Callable, Mapping
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import yaml

import friction_estimator as fe
from benchmarks.faults.live import TIME_OUT, NodeProcess
from benchmarks.faults.matrix import ProcessFault, Wrong
from benchmarks.faults.node import FaultyRobot
from benchmarks.faults.offline import EstimatorDriver
from benchmarks.faults.readings import Walk
from friction_estimator.io.parameters import save_parameters
from friction_estimator.io.robot import find_urdf

_MEMORY = 3 * 2**30
"""Address space of a program that reads a bad file [byte]."""


def file_faults() -> list[ProcessFault]:
    """All rows."""
    return [*_documents(), *_descriptions(), *_recordings(), *_names()]


def _documents() -> list[ProcessFault]:
    def covariance(matrix: Callable[[np.ndarray], np.ndarray]) -> Callable[[dict[str, Any]], object]:
        return lambda joint: joint.update(covariance=matrix(np.array(joint["covariance"])).tolist())

    def value(number: float, name: str = "") -> Callable[[dict[str, Any]], object]:
        return lambda joint: joint["values"].update({name or next(iter(joint["values"])): number})

    indefinite = covariance(lambda P: P + 2.0 * P.max() * (1.0 - np.eye(len(P))))
    entries: list[tuple[str, str, Callable[[dict[str, Any]], object], tuple[str, ...]]] = [
        ("1e300", "a value of 1e300", value(1e300), ("l_knee",)),
        ("negative", "a viscous friction of -50 N m s/rad", value(-50.0, "viscous"), ("l_knee",)),
        (
            "coulomb",
            "a slope of -50 N m, so that the Coulomb friction is negative",
            value(-50.0),
            ("l_knee", "Coulomb"),
        ),
        ("nan", "a value that is NaN", value(math.nan), ("l_knee",)),
        (
            "asymmetric",
            "a covariance that is not symmetric",
            covariance(lambda P: P + np.triu(np.ones_like(P), 1)),
            ("l_knee", "covariance"),
        ),
        ("indefinite", "a covariance with a negative eigenvalue", indefinite, ("l_knee", "covariance")),
    ]
    line, sooner = "exit code 1; one line with file and joint", "exit code 1 at the start; the path is named"
    bomb = (f"{new}: &{new} [{','.join(9 * ['*' + old])}]\n" for old, new in itertools.pairwise("abcdefghi"))
    parameter = "/**: {{ros__parameters: {{{}}}}}\n".format
    documents = {
        "aliases": ("alias bomb", "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(bomb)),
        "deep": ("50,000 nested lists", "a: " + 50_000 * "[" + 50_000 * "]"),
        "large": ("100 MB of text", "a: '" + 100_000_000 * "x" + "'"),
        "recursive": ("a list that holds itself", "a: &a [*a]\n"),
        "int": ("!!int abc", parameter("observer: !!int abc")),
        "date": ("a date as a parameter", parameter("observer: 2024-13-45")),
        "tag": ("a stray !", parameter("observer: !")),
        "python": ("a Python object", "a: !!python/object/apply:os.getcwd []\n"),
        "number": ("a number of 10,000 digits", parameter(f"sensors: {{force_std: {10_000 * '9'}}}")),
    }
    in_time, cut = "exit code 1 within 20 s; one line with the file", "exit code 1; one line with the file"
    folder = "parameter file in a folder that cannot be written"
    return [
        *(
            ProcessFault(f"parameters_{name}", f"parameter file: {what}", line, partial(_bad_parameters, change, words))
            for name, what, change, words in entries
        ),
        ProcessFault("parameters_folder", folder, sooner, _bad_folder),
        ProcessFault("parameters_cut", "parameter file that was cut off in the middle", cut, _cut_parameters),
        *(
            ProcessFault(f"yaml_{name}", f"robot YAML: {what}", in_time, partial(_bad_document, text))
            for name, (what, text) in documents.items()
        ),
    ]


def _descriptions() -> list[ProcessFault]:
    refused, doubted = "exit code 1; the link is named", "a warning that names the link"
    masses = {"nan": refused, "abc": refused, "1,5": refused, "-3.0": refused, "1e6": doubted}
    rows = [
        ProcessFault(f"mass_{text}", f"URDF: a mass of {text}", outcome, partial(_bad_mass, text, outcome == refused))
        for text, outcome in masses.items()
    ]
    inertia = "URDF: an inertia that violates the triangle inequality"
    large = "exit code 1; one line with the number"
    return [
        *rows,
        ProcessFault("inertia_triangle", inertia, doubted, _bad_inertia),
        ProcessFault("links_80000", "URDF: 80,000 links", large, partial(_bad_urdf, _chain(80_000), ("80000 links",))),
        ProcessFault(
            "elements_100000",
            "URDF: 100,000 elements inside one another",
            large,
            partial(_bad_urdf, f"<robot name='x'>{100_000 * '<a>'}{100_000 * '</a>'}</robot>", ("50 elements",)),
        ),
    ]


def _recordings() -> list[ProcessFault]:
    in_time = "exit code 1 within 20 s; one line with the file"
    return [
        ProcessFault("bag_text", "bag: SQLite payloads stored as text", in_time, _text_bag),
        ProcessFault("npz_bomb", "table: an .npz of some MB that unpacks to 3 GB", in_time, _bomb),
    ]


def _names() -> list[ProcessFault]:
    named, kept = "exit code 1; the parameter is named", "link, permissions and content stay; exit code 0"
    break_, private = "a line break in the name of a joint, exported to C", "parameter file of mode 0600 behind a link"
    return [
        ProcessFault("foot_topic", "a foot topic with a space", named, _bad_topic),
        ProcessFault("name_line_break", break_, "exit code 1; one line with file and name", _line_break),
        ProcessFault("private_file", private, kept, _private_file),
    ]


def exit_code(process: NodeProcess, code: int) -> Wrong:
    """Whether a node has ended well."""
    wrong = [] if code == 0 else [f"exit code {code}"]
    return wrong + (["a traceback"] if "Traceback" in process.output else [])


def _good_parameters(walk: Walk, file: Path) -> dict[str, Any]:
    """Content of a parameter file after some seconds of walking."""
    driver = EstimatorDriver(walk)
    driver.feed(walk.readings(0, 6000, 1))
    save_parameters(file, driver.estimator.identified)
    document: dict[str, Any] = yaml.safe_load(file.read_text(encoding="utf-8"))
    return document


def _bad_parameters(
    change: Callable[[dict[str, Any]], object], words: tuple[str, ...], walk: Walk, folder: Path
) -> Wrong:
    file = folder / "bad.yaml"
    document = _good_parameters(walk, file)
    change(document["joints"]["l_knee"])
    file.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
    return _refused(folder, (file.name, *words), f"identified_parameters:={file}")


def _cut_parameters(walk: Walk, folder: Path) -> Wrong:
    file = folder / "cut.yaml"
    _good_parameters(walk, file)
    text = file.read_text(encoding="utf-8")
    file.write_text(text[: len(text) // 2], encoding="utf-8")
    return _refused(folder, (file.name,), f"identified_parameters:={file}")


def _bad_folder(walk: Walk, folder: Path) -> Wrong:
    blocker = folder / "no_folder"
    blocker.write_text("a file", encoding="utf-8")
    return _refused(folder, ("no_folder",), f"identified_parameters:={blocker / 'saved.yaml'}")


def _bad_topic(walk: Walk, folder: Path) -> Wrong:
    return _refused(folder, ("l_foot", "topic"), "feet.l_foot.topic:='l foot/wrench'")


def _bad_urdf(text: str, words: tuple[str, ...], walk: Walk, folder: Path) -> Wrong:
    file = folder / "large.urdf"
    file.write_text(text, encoding="utf-8")
    return _refused(folder, (file.name, *words), f"robot.urdf:={file}")


def _chain(links: int) -> str:
    """URDF of links that hang on one another."""
    parts = [f'<link name="l{k}"/>' for k in range(links)]
    parts += [
        f'<joint name="j{k}" type="fixed"><parent link="l{k - 1}"/><child link="l{k}"/></joint>'
        for k in range(1, links)
    ]
    return f'<robot name="chain">{"".join(parts)}</robot>'


def _bad_mass(text: str, refused: bool, walk: Walk, folder: Path) -> Wrong:
    return _urdf_with(walk, folder, "mass", {"value": text}, refused)


def _bad_inertia(walk: Walk, folder: Path) -> Wrong:
    return _urdf_with(walk, folder, "inertia", {"ixx": "9.0", "iyy": "0.1", "izz": "0.1"}, False)


def _urdf_with(walk: Walk, folder: Path, tag: str, values: Mapping[str, str], refused: bool) -> Wrong:
    """Whether the node refuses or doubts a URDF whose first leg link has other inertial values."""
    tree = ElementTree.parse(find_urdf(walk.robot.config.robot.urdf, ()))
    link = next(
        link
        for link in tree.getroot().iterfind("link")
        if "knee" in link.get("name", "") or "shank" in link.get("name", "")
    )
    found = link.find(f"inertial/{tag}")
    if found is None:
        return [f"the link {link.get('name')} has no {tag}"]
    found.attrib.update(values)
    file = folder / "bad.urdf"
    tree.write(file)
    name = link.get("name", "")
    if refused:
        return _refused(folder, (name,), f"robot.urdf:={file}")
    with closing(NodeProcess(folder, f"robot.urdf:={file}")) as process:
        process.await_output("estimating")
        wrong = exit_code(process, process.end())
        return wrong if name in process.output else [*wrong, f"the link {name} is not named"]


def _refused(folder: Path, words: tuple[str, ...], *parameters: str) -> Wrong:
    """Whether a node with these parameters ends with exit code 1 and one line that holds these words."""
    process = NodeProcess(folder, *parameters)
    give_up = time.monotonic() + TIME_OUT
    while process.process.poll() is None and "estimating" not in process.output and time.monotonic() < give_up:
        time.sleep(0.05)
    if process.process.poll() is None:
        code = process.end()
        return [f"the node starts, and ends with exit code {code}"]
    return _one_line(process.process.returncode, process.output, words)


def _one_line(code: int, output: str, words: tuple[str, ...]) -> Wrong:
    lines = [line for line in output.splitlines() if line.startswith(("error: ", "friction_estimator: error: "))]
    wrong = [] if code == 1 else [f"exit code {code}"]
    if "Traceback" in output:
        wrong.append(f"a traceback that ends with {output.strip().splitlines()[-1][:120]!r}")
    elif len(lines) != 1:
        wrong.append(f"{len(lines)} lines begin with 'error:'")
    missing = [word for word in words if lines and word not in lines[0]]
    return wrong + ([f"{', '.join(missing)} not named in {lines[0][:160]!r}"] if missing else [])


def _bad_document(text: str, walk: Walk, folder: Path) -> Wrong:
    file = folder / "bad_robot.yaml"
    file.write_text(text, encoding="utf-8")
    return _refused_by("simulate", (file.name,), "-o", folder / "bag", "--duration", "0.1", "--robot", file)


def _text_bag(walk: Walk, folder: Path) -> Wrong:
    bag = folder / "walk"
    fe.simulate("suralp", duration=0.1).save(bag, storage="sqlite3")
    (database,) = bag.glob("*.db3")
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("UPDATE messages SET data = 'text'")
    words = (bag.name, "not as bytes")
    wrong = _refused_by("replay", words, bag, "-o", folder / "replayed", "--robot", "suralp")
    return wrong + _refused_by("identify", words, bag, "-o", folder / "identified.yaml")


def _bomb(walk: Walk, folder: Path) -> Wrong:
    file, count, piece = folder / "bomb.npz", 375_000_000, 25_000_000
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({count},), }}".ljust(117) + "\n"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        with archive.open("time.npy", "w", force_zip64=True) as stream:
            stream.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
            for _ in range(count // piece):
                stream.write(bytes(8 * piece))
    return _refused_by("identify", (file.name, "3000 MB"), file, "-o", folder / "identified.yaml")


def _line_break(walk: Walk, folder: Path) -> Wrong:
    file = folder / "friction.yaml"
    document = _good_parameters(walk, file)
    names = [name.replace("l_knee", "l_knee\n#define double float") for name in document["joint_names"]]
    document["joints"] = dict(zip(names, document["joints"].values(), strict=True))
    document["joint_names"] = names
    file.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
    wrong = _refused_by("export", (file.name, "l_knee"), file, "--to", "c_header", "-o", folder / "friction.h")
    return wrong + (["the header is there"] if (folder / "friction.h").exists() else [])


def _private_file(walk: Walk, folder: Path) -> Wrong:
    secret, link = folder / "secret" / "friction.yaml", folder / "link.yaml"
    secret.parent.mkdir()
    _good_parameters(walk, secret)
    secret.chmod(0o600)
    before = secret.read_text(encoding="utf-8")
    link.symlink_to(secret)
    options = "inputs_reliable:=true", f"identified_parameters:={link}"
    with closing(NodeProcess(folder, *options)) as process, closing(FaultyRobot(walk)) as robot:
        process.await_output("estimating")
        robot.connect(compensation=False)
        good = walk.readings(0, 2500, time.time_ns())
        robot.send(good)
        robot.finish(good)
        wrong = exit_code(process, process.end())
    previous = link.with_name("link.previous.yaml")
    wrong += [] if link.is_symlink() else ["the link is replaced"]
    wrong += [] if secret.read_text(encoding="utf-8") != before else ["nothing is written"]
    wrong += [] if previous.read_text(encoding="utf-8") == before else ["the earlier file is not kept"]
    modes = [f"{stat.S_IMODE(path.stat().st_mode):o}" for path in (secret, previous)]
    return wrong + ([] if modes == ["600", "600"] else [f"permissions {' and '.join(modes)}"])


def _refused_by(verb: str, words: tuple[str, ...], *arguments: str | Path) -> Wrong:
    """Whether a verb of the command line ends in time with exit code 1 and one line that holds these words."""
    command = [sys.executable, "-m", "friction_estimator", verb, *map(str, arguments)]
    limit = partial(resource.setrlimit, resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20.0, preexec_fn=limit, check=False)
    except subprocess.TimeoutExpired:
        return ["no end after 20 s"]
    return _one_line(done.returncode, done.stderr, words)
