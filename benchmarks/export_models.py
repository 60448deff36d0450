"""Exports friction into every URDF below a folder, and reads the results back.

    python benchmarks/export_models.py FOLDER

Pinocchio must find the exported friction in the URDF, and MuJoCo in the MJCF that is made from it, whose mass matrix is
compared with that of the URDF. Prints one line for each file that differs, and a summary as Markdown.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import mujoco
import numpy as np
import pinocchio as pin

from friction_estimator.io.export import ExportRequest, JointFriction, export_friction, joint_frictions
from friction_estimator.io.identification import identification_of_parameters
from friction_estimator.laws.joint_laws import IdentifiedParameters

TOLERANCE = 1e-6
"""Largest difference of two elements of the mass matrices that counts as none [kg m^2]."""


def some_friction(names: list[str]) -> tuple[JointFriction, ...]:
    """Coulomb and viscous friction, another one for each joint."""
    n = len(names)
    values = np.column_stack((1.0 + np.arange(n), 0.1 + 0.01 * np.arange(n)))
    zeros = np.zeros(n)
    laws = ("coulomb_viscous",) * n
    friction = IdentifiedParameters(tuple(names), laws, values, np.zeros((n, 2, 2)), zeros, zeros, zeros)
    return joint_frictions(identification_of_parameters(friction))


def urdf_is_right(model: pin.Model, exported: str, joints: tuple[JointFriction, ...]) -> bool:
    """Whether pinocchio reads the friction, to the bit, and the same inertias as before."""
    again = pin.buildModelFromXML(exported)
    rows = [again.joints[again.getJointId(joint.joint)].idx_v for joint in joints]
    viscous = np.array_equal(again.damping[rows], [joint.simple.viscous for joint in joints])
    dry = np.array_equal(again.upperDryFrictionLimit[rows], [joint.simple.coulomb for joint in joints])
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


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="with URDF files, at any depth")
    files, right, same = 0, 0, 0
    for path in sorted(parser.parse_args().folder.rglob("*.urdf")):
        text = path.read_bytes().decode("utf-8")
        try:
            model = pin.buildModelFromXML(text)
        except ValueError:
            continue  # no URDF, to pinocchio
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
    print(f"| URDF files | friction read from the URDF | MJCF loads | same mass matrix |\n|{4 * '---|'}")
    print(f"| {files} | {right} | {files} | {same} |")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
