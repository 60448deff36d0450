"""Do pinocchio and MuJoCo read the friction that is exported into URDF files?

    python -m benchmarks.export_models FOLDER

FOLDER has URDF files at any depth. Pinocchio must read the exported friction from the URDF, and MuJoCo from the MJCF
made of it, whose mass matrix is compared with that of the URDF. Prints a line for each file that differs, and a
summary as Markdown. Takes about one second a file.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import mujoco
import numpy as np
import pinocchio as pin

from benchmarks.shared.command import command, folder_with, make_parser
from benchmarks.shared.pages import table
from friction_estimator.io.export import ExportedFriction, ExportRequest, export_friction, joint_frictions
from friction_estimator.io.identification_file import identification_of_parameters
from friction_estimator.laws.identified import IdentifiedParameters

TOLERANCE = 1e-6
"""Largest difference of two elements of the mass matrices that counts as none [kg m^2]."""


def some_friction(names: list[str]) -> tuple[ExportedFriction, ...]:
    """Coulomb and viscous friction, another one for each joint."""
    n = len(names)
    values = np.column_stack((1.0 + np.arange(n), 0.1 + 0.01 * np.arange(n)))
    zeros = np.zeros(n)
    laws = ("coulomb_viscous",) * n
    friction = IdentifiedParameters(tuple(names), laws, values, np.zeros((n, 2, 2)), zeros, zeros, zeros)
    return joint_frictions(identification_of_parameters(friction))


def urdf_is_right(model: pin.Model, exported: str, joints: tuple[ExportedFriction, ...]) -> bool:
    """Whether pinocchio reads exactly the exported friction and the same inertias."""
    again = pin.buildModelFromXML(exported)
    rows = [again.joints[again.getJointId(joint.joint)].idx_v for joint in joints]
    viscous = np.array_equal(again.damping[rows], [joint.coulomb_viscous.viscous for joint in joints])
    dry = np.array_equal(again.upperDryFrictionLimit[rows], [joint.coulomb_viscous.coulomb for joint in joints])
    return viscous and dry and all(a == b for a, b in zip(model.inertias, again.inertias, strict=True))


def mass_matrix_error(model: pin.Model, exported: str) -> float:
    """Largest difference between the mass matrices of the URDF and of the MJCF in the zero position [kg m^2]."""
    made = mujoco.MjModel.from_xml_string(exported)
    data = mujoco.MjData(made)
    data.qpos[:] = 0.0
    mujoco.mj_forward(made, data)
    found = np.zeros((made.nv, made.nv))
    mujoco.mj_fullM(made, data, found)
    upper = np.triu(pin.crba(model, model.createData(), pin.neutral(model)))
    rows = [model.joints[model.getJointId(made.joint(row).name)].idx_v for row in range(made.njnt)]
    expected = (upper + np.triu(upper, 1).T)[np.ix_(rows, rows)]
    return float(np.abs(expected - found).max())


@command
def main(arguments: Sequence[str] | None = None) -> None:
    parser = make_parser("export_models", __doc__)
    parser.add_argument("folder", type=folder_with("**/*.urdf"), help="with URDF files, at any depth")
    files, right, same = 0, 0, 0
    for path in sorted(parser.parse_args(arguments).folder.rglob("*.urdf")):
        text = path.read_bytes().decode("utf-8")
        try:
            model = pin.buildModelFromXML(text)
        except ValueError:
            continue  # pinocchio cannot read it
        joints_by_name = list(zip(model.names, model.joints, strict=True))[1:]  # without the universe
        names = [name for name, joint in joints_by_name if joint.nv == 1]
        if not names:
            continue
        joints = some_friction(names)
        files += 1
        right += urdf_is_right(model, export_friction("urdf", ExportRequest(joints, model=text)).text, joints)
        made = export_friction("mjcf", ExportRequest(joints, model=text))
        error = mass_matrix_error(model, made.text)
        same += error < TOLERANCE
        if error >= TOLERANCE:
            print(f"{path.name}: {error:.2g} kg m^2; {'; '.join(text for text in made.warnings if 'inertia' in text)}")
    heading = "URDF files", "friction read from the URDF", "MJCF loads", "same mass matrix"
    print(*table(heading, [(files, right, files, same)]), sep="\n")


if __name__ == "__main__":
    sys.exit(main())
