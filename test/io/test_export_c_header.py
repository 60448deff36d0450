"""The C header, compiled and asked for the same torques as the laws in Python."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from friction_estimator.io.export import ExportedFriction, ExportRequest, export_friction, joint_frictions
from friction_estimator.io.export.c_header import C_LAWS, identifiers
from friction_estimator.io.identification_file import identification_of_parameters
from friction_estimator.laws import make_law
from friction_estimator.laws.identified import IdentifiedParameters
from test.known_identification import make_identification

COMPILERS = [("cc", "-std=c99"), ("c++", "-std=c++11")]
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror"]
CALLS = """
#include "friction.h"
#include <stdio.h>
int main(void)
{
    int joint; double velocity, load;
    while (scanf("%d %lf %lf", &joint, &velocity, &load) == 3)
        printf("%.17g\\n", friction_torque(joint, velocity, load));
    fputs(friction_joint_names[FRICTION_JOINT_COUNT - 1], stderr);
    return 0;
}
"""
VELOCITIES = [0.0, *np.geomspace(1e-4, 3.0, 9), *-np.geomspace(2e-4, 2.0, 9)]
LOADS = [0.0, 12.5, -7.0]


def friction_of(law_names: list[str], joint_names: list[str]) -> tuple[ExportedFriction, ...]:
    """Random parameters, each about one."""
    width = max(len(make_law(name).parameter_names) for name in law_names)
    values = np.random.default_rng(3).uniform(0.5, 1.5, size=(len(law_names), width))
    counts = [len(make_law(name).parameter_names) for name in law_names]
    values *= np.arange(width) < np.array(counts)[:, None]
    zeros = np.zeros(len(law_names))
    covariance = np.stack([np.diag(row**2 * 1e-4) for row in values])
    friction = IdentifiedParameters(tuple(joint_names), tuple(law_names), values, covariance, zeros, zeros, zeros)
    return joint_frictions(identification_of_parameters(friction))


def torques_in_c(header: str, folder: Path, compiler: str, standard: str, joints: int) -> tuple[np.ndarray, str]:
    (folder / "friction.h").write_text(header, encoding="utf-8")
    source = folder / ("main.cpp" if "++" in compiler else "main.c")
    source.write_text(CALLS)
    program = folder / "main"
    subprocess.run([compiler, standard, *STRICT, str(source), "-o", str(program), "-lm"], check=True, timeout=60)
    questions = "".join(f"{j} {v!r} {a!r}\n" for j in range(joints) for v in map(float, VELOCITIES) for a in LOADS)
    done = subprocess.run([str(program)], input=questions, capture_output=True, text=True, check=True, timeout=20)
    return np.array(done.stdout.split(), dtype=float).reshape(joints, -1), done.stderr


@pytest.mark.parametrize(("compiler", "standard"), COMPILERS)
def test_c_evaluates_every_law_as_python_does(tmp_path: Path, compiler: str, standard: str) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"no compiler {compiler!r} on this machine")
    laws = sorted(C_LAWS)
    odd = ["l hip", "l-hip", "2nd", "double", 'back\\slash "é" */']
    friction = friction_of(laws, [*(f"joint_{row}" for row in range(len(laws) - len(odd))), *odd])
    made = export_friction("c_header", ExportRequest(friction, ("from a test */ /* \\",)))
    found, last_name = torques_in_c(made.text, tmp_path, compiler, standard, len(laws))
    velocity, load = (grid.ravel() for grid in np.meshgrid(VELOCITIES, LOADS, indexing="ij"))
    for row, joint in enumerate(friction):
        expected = joint.law.torque(np.tile(joint.values, (velocity.size, 1)), velocity, load)
        np.testing.assert_allclose(found[row], expected, rtol=1e-13, atol=1e-13, err_msg=laws[row])
    assert made.warnings == ()
    assert last_name == odd[-1]


def test_a_law_without_a_c_form_is_reduced_with_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which("cc") is None:
        pytest.skip("no compiler 'cc' on this machine")
    monkeypatch.setattr("friction_estimator.io.export.c_header.C_LAWS", {})
    friction = joint_frictions(make_identification(("hip", "knee")))
    made = export_friction("c_header", ExportRequest(friction))
    found, _ = torques_in_c(made.text, tmp_path, "cc", "-std=c99", 2)
    velocity = np.repeat(VELOCITIES, len(LOADS))
    for row, joint in enumerate(friction):
        simple = joint.coulomb_viscous
        expected = simple.coulomb * np.sign(velocity) + simple.viscous * velocity + simple.offset
        np.testing.assert_allclose(found[row], expected, rtol=1e-13)
    assert "'load_quadrants' has no C form" in made.warnings[0] and "dependence on load" in made.warnings[0]
    assert "the law 'load_quadrants' has no C form" in made.text


def test_identifiers_are_valid_and_different() -> None:
    names = identifiers(["a b", "a-b", "a_b", "a_b_2", "int", "9", "", "é"])
    assert names == ["a_b", "a_b_2", "a_b_3", "a_b_2_2", "int_", "_9", "_", "__2"]
