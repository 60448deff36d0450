"""Exports of motors that move several joints together: what each format can say, read back by those who read it."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml

from benchmarks.shared.coupling import joint_torque, motor_torque, motor_velocity
from friction_estimator.cli.main import main
from friction_estimator.config.robot import Coupling
from friction_estimator.errors import ConfigError
from friction_estimator.identification.result import DriveGain, Identification
from friction_estimator.io.export import ExportRequest, export_friction, joint_frictions
from friction_estimator.io.identification_file import save_identification
from friction_estimator.laws import make_law
from test.io.test_export_c_header import COMPILERS, STRICT, friction_of
from test.known_identification import make_identification

COUPLING = Coupling(("pitch", "roll"), ("m0", "m1"), np.array([[0.5, -0.5], [0.4, 0.5]]))
CALLS = """
#include "friction.h"
#include <stdio.h>
int main(void)
{
    double v[3], a[3], f[3];
    while (scanf("%lf %lf %lf %lf %lf %lf", v, v + 1, v + 2, a, a + 1, a + 2) == 6) {
        friction_torques(v, a, f);
        printf("%.17g %.17g %.17g\\n", f[0], f[1], f[2]);
    }
    printf("%.17g %.17g %.17g\\n", friction_drive_gain[0], friction_drive_offset[0], friction_drive_gain[2]);
    fputs(friction_moved_joint_names[0], stderr);
    return 0;
}
"""
URDF = """<robot name="r"><link name="a"/><link name="b"/><link name="c"/>
<joint name="pitch" type="revolute"><parent link="a"/><child link="b"/></joint>
<joint name="neck" type="revolute"><parent link="b"/><child link="c"/></joint></robot>"""


def job(**changes: object) -> ExportRequest:
    """Two motors and a joint, in another order than the coupling; the drive of the first one is known."""
    names = ["m1", "neck", "m0"]
    friction = friction_of(["load_quadrants", "coulomb_viscous", "asymmetric_stribeck"], names)
    (first,) = joint_frictions(replace(_saved("m1"), drives={"m1": DriveGain(0.25, 3.5, "N m/pwm")}))
    drive = first.drive
    return ExportRequest((replace(friction[0], drive=drive), *friction[1:]), **{"coupling": COUPLING, **changes})


def _saved(motor: str) -> Identification:
    return make_identification((motor,))


@pytest.mark.parametrize(("compiler", "standard"), COMPILERS)
def test_c_gives_the_friction_of_the_joints_that_motors_move_together(
    tmp_path: Path, compiler: str, standard: str
) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"no compiler {compiler!r} on this machine")
    made = job()
    (tmp_path / "friction.h").write_text(export_friction("c_header", made).text)
    source = tmp_path / ("main.cpp" if "++" in compiler else "main.c")
    source.write_text(CALLS)
    subprocess.run(
        [compiler, standard, *STRICT, str(source), "-o", str(tmp_path / "main"), "-lm"], check=True, timeout=60
    )
    rng = np.random.default_rng(0)
    velocity, load = rng.normal(size=(20, 3)), 10.0 * rng.normal(size=(20, 3))
    lines = "".join(" ".join(map(repr, row)) + "\n" for row in np.hstack((velocity, load)).tolist())
    done = subprocess.run([str(tmp_path / "main")], input=lines, capture_output=True, text=True, check=True, timeout=20)
    numbers = np.array(done.stdout.split(), dtype=float).reshape(-1, 3)
    roll_pitch = [2, 0]  # joints (roll, neck, pitch) stand where the motors (m1, neck, m0) do
    turn, pull = velocity.copy(), load.copy()
    turn[:, roll_pitch] = motor_velocity(COUPLING, velocity[:, roll_pitch])
    pull[:, roll_pitch] = motor_torque(COUPLING, load[:, roll_pitch])
    columns = [
        make_law(one.law.name).torque(np.tile(one.values, (20, 1)), turn[:, k], pull[:, k])
        for k, one in enumerate(made.joints)
    ]
    expected = np.column_stack(columns)
    expected[:, roll_pitch] = joint_torque(COUPLING, expected[:, roll_pitch])
    np.testing.assert_allclose(numbers[:-1], expected, rtol=1e-12, atol=1e-12)
    assert numbers[-1, :2].tolist() == [3.5, 0.25] and np.isnan(numbers[-1, 2])
    assert done.stderr == "roll"


def test_ros2_control_holds_joints_motors_matrix_and_drive_but_no_gain_of_coupled_joints() -> None:
    made = export_friction("ros2_control", job())
    parameters = yaml.safe_load(made.text)["joint_trajectory_controller"]["ros__parameters"]
    assert parameters["joints"] == ["roll", "neck", "pitch"]
    assert list(parameters["gains"]) == ["neck"] and sorted(parameters["friction"]) == ["m0", "m1", "neck"]
    assert parameters["coupling"] == {
        "joints": ["pitch", "roll"],
        "motors": ["m0", "m1"],
        "matrix": [0.5, -0.5, 0.4, 0.5],
    }
    assert parameters["friction"]["m1"]["drive"] == {"gain": 3.5, "offset": 0.25, "unit": "N m/pwm"}
    assert "drive" not in parameters["friction"]["neck"]
    assert any("'gains' cannot express it" in text for text in made.warnings)


def test_a_urdf_gets_the_friction_of_single_joints_and_a_warning_for_the_others() -> None:
    made = export_friction("urdf", job(model=URDF))
    assert made.text.count("<dynamics") == 1
    assert any("the friction of the motors 'm0', 'm1'" in text and "is left out" in text for text in made.warnings)
    # a motor that is called like a joint is still no joint
    same = replace(COUPLING, motor_names=("m1", "neck"))
    with pytest.raises(Exception, match="none of the joints 'm0'.*; 'm1', 'neck' are motors that move several joints"):
        export_friction("urdf", job(model=URDF, coupling=same))


def test_motors_without_friction_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ConfigError, match="no friction of the motor 'm7'"):
        job(coupling=replace(COUPLING, motor_names=("m0", "m7")))
    save_identification(tmp_path / "p.yaml", make_identification(("m0", "m1")))
    text = "{joints: [pitch, roll], motors: [m0, m1], matrix: [0.5, -0.5, 0.4, 0.5]}"
    (tmp_path / "coupling.yaml").write_text(f"/**: {{ros__parameters: {{robot: {{coupling: {text}}}}}}}")
    command = ["export", str(tmp_path / "p.yaml"), "--coupling", str(tmp_path / "coupling.yaml"), "--to"]
    assert main([*command, "c_header", "-o", str(tmp_path / "f.h")]) == 0
    assert "friction_torques" in (tmp_path / "f.h").read_text()
