"""`import friction_estimator`: what a notebook sees."""

from __future__ import annotations

import ast
import dataclasses
import doctest
import importlib
import inspect
import subprocess
import sys

import numpy as np
import pytest

import friction_estimator as fe
from friction_estimator.api.identify import IdentificationResult
from friction_estimator.api.replay import ReplayResult


def test_every_public_name_is_defined_in_the_module_that_the_package_names() -> None:
    tree = ast.parse(inspect.getsource(fe))
    imports = (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.level == 0)
    typed = {one.asname: node.module for node in imports for one in node.names if one.asname}
    assert typed == {name: f"friction_estimator.{module}" for name, module in fe._MODULES.items()}
    for name in fe.__all__:
        assert getattr(fe, name).__module__ == f"friction_estimator.{fe._MODULES[name]}"
        assert getattr(fe, name).__doc__ and name in dir(fe)


@pytest.fixture(scope="module")
def arm() -> fe.IdentificationResult:
    return fe.identify(fe.example("arm"), "arm", law="coulomb_viscous")


def test_results_show_themselves_in_a_few_lines(arm: fe.IdentificationResult) -> None:
    recording = fe.example("arm")
    assert "position=<2701 x 2 float64>" in repr(recording)
    for one in (recording, arm, fe.load_robot("humanoid")):
        assert len(repr(one)) < 2000


def test_results_are_frames_and_figures(arm: fe.IdentificationResult) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed (extra plot)")
    pytest.importorskip("pandas", reason="pandas is not installed (extra plot)")
    pytest.importorskip("mujoco", reason="MuJoCo is not installed")
    walk = fe.replay(fe.simulate("suralp", duration=0.3))
    frame = walk.to_frame()
    np.testing.assert_array_equal(frame["friction", "l_knee"], walk.friction[:, walk.joint_names.index("l_knee")])
    assert frame.index[-1] == walk.time[-1] and set(frame["contact_phase"]) == {"double_support"}
    over_time, over_velocity = walk.plot(["r_knee"]).axes
    assert over_time.get_ylabel() == "r_knee [N m]" and len(over_time.lines) == len(over_velocity.lines) == 2
    assert arm.to_frame().loc["elbow/coulomb", "value"] == pytest.approx(0.6, abs=0.02)
    assert len(arm.plot().axes) == 2
    with pytest.raises(fe.FrictionEstimatorError, match="no joint 'toe' in the result; it has 'elbow', 'shoulder'"):
        arm.plot(["toe"])


@pytest.mark.parametrize(("method", "package"), [("to_frame", "pandas"), ("plot", "matplotlib")])
def test_a_frame_or_figure_without_its_package_is_one_error_with_the_remedy(
    arm: fe.IdentificationResult, monkeypatch: pytest.MonkeyPatch, method: str, package: str
) -> None:
    for name in (package, f"{package}.figure"):
        monkeypatch.setitem(sys.modules, name, None)
    for kind in (IdentificationResult, ReplayResult):
        with pytest.raises(fe.FrictionEstimatorError, match=f"'{package}' is missing: .*pip install 'matplotlib"):
            getattr(kind, method)(arm)


def test_an_example_has_the_friction_that_its_description_names() -> None:
    result = fe.identify(fe.example("arm", seed=3), "arm", law="coulomb_viscous")
    assert result.values == pytest.approx(np.array([[1.5, 0.8], [0.6, 0.3]]), abs=0.02)
    pytest.importorskip("mujoco", reason="MuJoCo is not installed")
    leg = fe.identify(fe.example("leg"), "leg", law="coulomb_viscous", kp=20.0, kd=0.5)
    assert np.all(np.abs(leg.values - [[0.3, 0.2], [0.15, 0.1]]) < 3.0 * leg.sigma)
    with pytest.raises(fe.FrictionEstimatorError, match="no example 'toe'; there is 'arm', 'leg'"):
        fe.example("toe")


def test_a_robot_makes_an_estimator_that_is_ready_for_its_first_sample() -> None:
    code = (
        "import friction_estimator as fe; estimator = fe.load_robot('suralp').estimator(); "
        "from friction_estimator.kernels import compiler; print(len(estimator.joint_names), "
        "compiler._prepared == len(compiler.ENTRY_POINTS) > 0)"
    )
    made = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert made.stdout.split() == ["12", "True"]
    with pytest.raises(fe.FrictionEstimatorError, match="names no URDF; set robot.urdf"):
        dataclasses.replace(fe.load_robot("suralp"), urdf_xml="").estimator()


def test_an_unknown_name_is_an_error_that_lists_the_public_ones() -> None:
    with pytest.raises(
        AttributeError, match="no attribute 'estimate'; its public names are CommandSample, Estimator, .*simulate"
    ):
        _ = fe.estimate


def test_the_import_loads_no_library() -> None:
    code = "import friction_estimator, sys; print(*sorted({name.split('.')[0] for name in sys.modules}))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"numpy", "pinocchio", "numba", "rosbags", "mujoco", "plotly", "rclpy", "rich"} & set(loaded)


@pytest.mark.parametrize(
    ("name", "foreign"),
    [
        ("Estimator", {"rosbags", "mujoco", "plotly", "rclpy"}),
        ("load_robot", {"rosbags", "mujoco", "plotly", "rclpy", "pinocchio", "numba"}),
    ],
)
def test_a_name_loads_only_what_it_needs(name: str, foreign: set[str]) -> None:
    code = f"import friction_estimator as fe, sys; fe.{name}; print(*sorted(m.split('.')[0] for m in sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not foreign & set(loaded)


def test_the_examples_of_the_docstrings_are_true() -> None:
    pytest.importorskip("mujoco", reason="MuJoCo is not installed")
    pytest.importorskip("rosbags", reason="rosbags is not installed")
    for module in sorted(set(fe._MODULES.values())):
        failed, _ = doctest.testmod(importlib.import_module(f"friction_estimator.{module}"))
        assert failed == 0, module
