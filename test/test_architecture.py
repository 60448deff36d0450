"""Who may import whom: the rooms of docs/design/architecture.md."""

import ast
import graphlib
import re
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import friction_estimator

PACKAGE = Path(friction_estimator.__file__).parent

TOP_LEVEL = {"types", "errors", "kernels", "linear_algebra"}
"""Modules, and the room ``kernels``, that every room may import."""
ABOVE_HOT = {"tables", "metrics"}
"""Modules beside the rooms for the rooms that do not run on the robot."""
HOT = {"config", "robot", "laws", "base", "baselines", "estimation"}
"""Rooms that run on the robot: no ROS, files, clock or printing."""
BELOW_ROS = {*HOT, "kernels", "control", "identification", "messages", "io", "simulation", "reports"}
BELOW_ROS |= {"learning", "collision"}
ROOMS = {
    "config": set(),
    "robot": {"config"},
    "laws": {"config"},
    "base": {"config", "robot"},
    "baselines": {"config", "robot", "base"},
    "estimation": {"config", "robot", "laws", "base", "baselines"},
    "kernels": set(),
    "control": set(),
    "identification": {"config", "robot", "laws"},
    "messages": HOT,
    "io": HOT | {"identification", "messages"},
    "simulation": {"config", "robot", "laws", "io"},
    "reports": HOT | {"identification", "messages", "io"},
    "learning": HOT | {"messages", "io"},
    "collision": HOT | {"io", "learning"},
    "views": {"config", "robot", "io"},
    "api": BELOW_ROS,
    "fleet": BELOW_ROS | {"api"},
    "ros": BELOW_ROS | {"views"},
    "cli": BELOW_ROS | {"views", "api", "fleet", "ros"},
}
OPTIONAL = {
    "learning",
    "train",
    "evaluate",
    "collision",
    "collisions",
    "fleet",
    "init",
    "new_robot",
    "views",
    "view",
}
"""Rooms of extras, tools for a robot's first day, and their verbs: the estimator works without
them, and they count apart."""
DOCS = PACKAGE.parent / "docs" / "design" / "architecture.md"

ROS = {
    "rclpy", "ament_index_python", "launch", "launch_ros", "tf2_ros", "tf2_msgs", "builtin_interfaces",
    "diagnostic_msgs", "geometry_msgs", "lifecycle_msgs", "nav_msgs", "rcl_interfaces", "rosgraph_msgs",
    "sensor_msgs", "std_msgs", "std_srvs", "visualization_msgs",
}  # fmt: skip
LIBRARIES = {  # rooms, or parts of rooms, that alone may import a library
    "pinocchio": {"robot", "identification", "simulation", "views"},
    "mujoco": {"simulation", "io.export.robot_models"},
    "rosbags": {"io.bags"},
    "mcap": {"io.bags"},
    "plotly": {"reports"},
    "yaml": {"io"},
    "rich": {"cli"},
    "distributed": {"fleet"},
    "pyarrow": {"fleet"},
    "jax": {"learning.training"},
    "optax": {"learning.training"},
    "safetensors": {"learning"},
    "onnx": {"learning.onnx_file"},
    "pandas": {"api.identify", "api.replay"},
    "matplotlib": {"api.identify", "api.replay"},
    "rerun": {"views.rerun_view"},
    "foxglove": {"views.foxglove_view"},
    **{name: {"ros"} for name in ROS},
}
NOT_IN_HOT_ROOMS = {"time", "datetime", "logging", "pathlib", "os", "io", "sys", "subprocess", "threading", "random"}


parsed = cache(ast.parse)


def imported(tree: ast.Module, module: str) -> Iterator[str]:
    """Full names of the modules that a module imports anywhere, also in functions; a package imports as __init__."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = module.split(".")[: -node.level] if node.level else []
            origin = ".".join([*base, *([node.module] if node.module else [])])
            yield from (f"{origin}.{name.name}" for name in node.names)


def wrong_arrows(source: str, module: str) -> list[str]:
    """Imports of one module, e.g. ``friction_estimator.estimation.pipeline``, that the rooms do not allow."""
    room = module.split(".")[1]
    if room not in ROOMS:  # __init__, __main__ and the modules beside the rooms
        return []
    wrong = []
    for name in imported(parsed(source), module):
        top, _, rest = name.partition(".")
        if top == "friction_estimator":
            target = rest.split(".")[0]
            beside = TOP_LEVEL if room in HOT else TOP_LEVEL | ABOVE_HOT
            free = target in {"", room, *beside} or target in ROOMS[room]
        elif room in HOT:
            pinocchio = {"pinocchio"} if room in LIBRARIES["pinocchio"] else set()
            free = top in {"numpy", "scipy"} | pinocchio or top in sys.stdlib_module_names - NOT_IN_HOT_ROOMS
        else:
            free = any(f"{module}.".startswith(f"friction_estimator.{place}.") for place in LIBRARIES.get(top, ROOMS))
        if not free:
            wrong.append(f"{module} imports {name}")
    return wrong


def module_name(path: Path) -> str:
    return ".".join(["friction_estimator", *path.relative_to(PACKAGE).with_suffix("").parts])


def test_no_room_imports_what_stands_above_or_beside_it() -> None:
    paths = sorted(PACKAGE.rglob("*.py"))
    assert len(paths) > 30
    assert [arrow for path in paths for arrow in wrong_arrows(path.read_text(), module_name(path))] == []


ESTIMATION = {
    "health": set(),
    "motion": set(),
    "observers": {"visited_velocities"},
    "readings": {"health"},
    "kalman": {"health", "motion", "observers", "visited_velocities"},
    "two_stage": {"health", "kalman", "motion", "observers", "visited_velocities"},
    "diagnosis": {"health", "readings"},
}
"""Parts of the room ``estimation``, and the other ones that they import."""


@pytest.mark.parametrize("part", ESTIMATION)
def test_parts_of_the_estimation_import_only_what_the_samples_reach_before_them(part: str) -> None:
    folder, found = PACKAGE / "estimation", set[str]()
    for path in [*(folder / part).glob("*.py"), *folder.glob(f"{part}.py")]:
        names = [name.split(".") for name in imported(parsed(path.read_text()), module_name(path))]
        found |= {name[2] for name in names if name[:2] == ["friction_estimator", "estimation"]}
    assert found - {part} == ESTIMATION[part]


def test_no_module_imports_itself_by_way_of_others() -> None:
    paths = {module_name(path).removesuffix(".__init__"): path for path in PACKAGE.rglob("*.py")}
    graph = {name: set[str]() for name in paths}
    for name, path in paths.items():
        for target in imported(without_type_checking(parsed(path.read_text())), module_name(path)):
            while target and target not in paths:
                target = target.rpartition(".")[0]
            graph[name] |= {target} - {name, ""}
    assert len(list(graphlib.TopologicalSorter(graph).static_order())) == len(paths)  # a cycle is an error


def without_type_checking(tree: ast.Module) -> ast.Module:
    """A module without the blocks that only type checkers read."""
    read = [node for node in tree.body if not (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test))]
    return ast.Module(read, [])


def test_every_room_on_disk_has_its_place_in_the_table() -> None:
    assert {path.parent.name for path in PACKAGE.glob("*/__init__.py")} == set(ROOMS)


def test_the_package_stays_small_enough_to_read() -> None:
    files = list(PACKAGE.rglob("*.py"))
    core = [path for path in files if OPTIONAL.isdisjoint(module_name(path).split("."))]
    assert sum("two_stage" not in path.parts for path in core) <= 200  # two_stage/ will take the place of kalman/
    assert sum("two_stage" in path.parts for path in core) <= 8
    folders = Counter(path.parent.relative_to(PACKAGE).as_posix() for path in files)
    assert {name: count for name, count in folders.items() if count > 20} == {}
    lines = {module_name(path): len(path.read_text(encoding="utf-8").splitlines()) for path in files}
    assert {name: count for name, count in lines.items() if count > 450} == {}


def test_the_table_is_the_one_of_the_docs() -> None:
    rows = re.findall(r"^\| `(\w+)/` \|.*\| ([^|]*) \|$", DOCS.read_text(), re.MULTILINE)
    documented: dict[str, set[str]] = {}
    for room, below in rows:
        named = set(re.findall(r"\w+", below)) & set(ROOMS)
        documented[room] = set(documented) - named if below.startswith("all above") else named
    assert documented == ROOMS


def test_only_the_command_line_and_the_nodes_print() -> None:
    printing = [
        module_name(path)
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(parsed(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]
    assert [name for name in printing if name.split(".")[1] not in ("cli", "ros")] == []


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("estimation.pipeline", "import rclpy"),
        ("estimation.pipeline", "import pinocchio"),
        ("estimation.pipeline", "from friction_estimator.io import load_robot"),
        ("estimation.pipeline", "from friction_estimator import io"),
        ("estimation.pipeline", "from ..io import load_robot"),
        ("estimation.pipeline", "def late():\n    from time import time"),
        ("estimation.pipeline", "import yaml"),
        ("base.odometry", "from friction_estimator.estimation.pipeline import Pipeline"),
        ("estimation.pipeline", "from friction_estimator.tables import number"),
        ("io.bags.replay", "import friction_estimator.simulation.walk"),
        ("io.bags.replay", "from sensor_msgs.msg import JointState"),
        ("io.robot", "import rosbags"),
        ("io.robot", "from friction_estimator.ros.parameters import ESTIMATOR_FIELDS"),
        ("reports.__init__", "from ..api import report"),
        ("ros.node", "import friction_estimator.cli.main"),
        ("ros.node", "import mujoco"),
        ("learning.network", "import jax"),
    ],
)
def test_an_import_against_the_order_of_the_rooms_is_detected(module: str, source: str) -> None:
    assert len(wrong_arrows(source, f"friction_estimator.{module}")) == 1


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("estimation.pipeline", "import math\nfrom ..types import SensorFrame\nfrom .. import config"),
        (
            "io.bags.replay",
            "from friction_estimator.metrics import rmse\nfrom friction_estimator.messages import x",
        ),
        ("ros.node", "import rclpy\nfrom friction_estimator.estimation.estimator import Estimator"),
        ("reports.recording_page", "from friction_estimator.tables import number"),
        ("cli.demo", "import friction_estimator.ros.node, friction_estimator.reports.recording_page"),
    ],
)
def test_an_import_in_the_order_of_the_rooms_is_accepted(module: str, source: str) -> None:
    assert wrong_arrows(source, f"friction_estimator.{module}") == []


def methods(family: list[ast.ClassDef]) -> dict[str, ast.FunctionDef]:
    return {item.name: item for one in family for item in one.body if isinstance(item, ast.FunctionDef)}


def assigned(method: ast.FunctionDef) -> set[str]:
    """Fields of ``self`` that a method assigns."""
    nodes = (node for node in ast.walk(method) if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store))
    return {node.attr for node in nodes if isinstance(node.value, ast.Name) and node.value.id == "self"}


def undeclared(tree: ast.Module) -> list[str]:
    """Fields that a class has only after some of its methods was called."""
    classes = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    found = []
    for name, one in classes.items():
        bases = [classes[base.id] for base in one.bases if isinstance(base, ast.Name) and base.id in classes]
        family = [*bases, one]
        declared = {node.target.id for item in family for node in item.body if isinstance(node, ast.AnnAssign)}
        for item in family:
            declared |= assigned(methods([item]).get("__init__", ast.FunctionDef("", body=[])))
        later = {field for method in methods([one]).values() for field in assigned(method)}
        found += [f"{name}.{field}" for field in sorted(later - declared)]
    return found


def test_classes_with_callbacks_declare_all_their_fields_before_any_callback_can_come() -> None:
    """A timer, a message or a transition may come at any time after a node was made."""
    trees = {path.stem: parsed(path.read_text()) for path in (PACKAGE / "ros").glob("*.py")}
    assert {name: found for name, tree in trees.items() if (found := undeclared(tree))} == {}


def test_a_field_that_a_later_method_adds_is_detected() -> None:
    source = "class Node:\n def __init__(self): self.a = 0\n def configure(self): self.a, self.b = 1, 2"
    assert undeclared(ast.parse(source)) == ["Node.b"]
