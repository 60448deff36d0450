"""Finding and reading a URDF."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

from friction_estimator.errors import RobotModelError, choices
from friction_estimator.io.resources import package_share, share_directory

_PACKAGE_SCHEME = "package://"


def find_urdf(urdf: str, folders: tuple[Path, ...] = ()) -> Path:
    """File that ``robot.urdf`` means.

    Parameters
    ----------
    urdf : an absolute path, ``package://<package>/<path>``, a path relative to one of ``folders`` (the one of the
        YAML file, say), or the name of a file in ``urdf/`` of this package
    folders : where a relative path starts, tried in this order

    Raises
    ------
    RobotModelError
        When there is no such file; the message says where it was looked for.
    """
    if urdf.startswith(_PACKAGE_SCHEME):
        package, _, inside = urdf[len(_PACKAGE_SCHEME) :].partition("/")
        candidates = [package_share(package) / inside]
    else:
        shipped = share_directory() / "urdf"
        candidates = [folder / Path(urdf).expanduser() for folder in (*folders, shipped)]
    for candidate in candidates:
        if candidate.is_file():
            return candidate.resolve()
    looked = ", ".join(dict.fromkeys(str(candidate) for candidate in candidates))
    names = [path.name for path in (share_directory() / "urdf").glob("*.urdf")]
    raise RobotModelError(f"no URDF {urdf!r}: looked for {looked}; the URDF files of this package are {choices(names)}")


def read_urdf(path: Path) -> str:
    """Text of a URDF, after a check that it is well-formed XML with a ``<robot>`` root.

    Raises
    ------
    RobotModelError
        When it cannot be read or is not a URDF; the message names file and line.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise RobotModelError(f"cannot read the URDF {path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise RobotModelError(f"cannot read the URDF {path}: it is not a UTF-8 text") from None
    check_urdf(text, str(path))
    return text


def check_urdf(text: str, origin: str) -> None:
    """Refuse a text that is not a URDF.

    Parameters
    ----------
    text : the URDF
    origin : where it came from, for the message: a file or a topic

    Raises
    ------
    RobotModelError
        When it is not well-formed XML (line named), not a URDF, or still a xacro.
    """
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        line, column = error.position
        raise RobotModelError(
            f"the URDF {origin} is not valid XML, line {line}, column {column + 1}: {error}"
        ) from None
    if root.tag != "robot":
        raise RobotModelError(f"{origin} is not a URDF: its root element is <{root.tag}>, expected <robot>")
    if any("www.ros.org/wiki/xacro" in element.tag or "ros.org/xacro" in element.tag for element in root.iter()):
        raise RobotModelError(f"{origin} is a xacro file, not a URDF: convert it first with `xacro FILE -o robot.urdf`")
    if root.find("link") is None:
        raise RobotModelError(f"the URDF {origin} has no <link>")
