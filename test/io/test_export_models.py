"""Exports into URDF and MJCF, read back by pinocchio and MuJoCo."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from friction_estimator.errors import ConfigError, RobotModelError
from friction_estimator.identification.fixed_base_model import FixedBaseModel
from friction_estimator.io.export import (
    FORMATS,
    ExportedFriction,
    ExportRequest,
    export_friction,
    joint_frictions,
)
from friction_estimator.io.robot import share_directory
from test.identification.arm import JOINTS as ARM_JOINTS
from test.identification.arm import URDF as ARM
from test.known_identification import DRIVE_INERTIA, make_identification

JOINTS = ("hip", "knee", "ankle")
EXPORTER_NAMES = list(FORMATS)
URDF = """<?xml version="1.0" encoding="utf-8"?>\r
<!-- damping="9" in a comment, and the joint 'hip' -->
<robot name='leg'>
  <link name="base"/>
  <joint name="hip" type="revolute"><parent link="base"/><child link="thigh"/><axis xyz="0 1 0"/>
    <limit lower="-1" upper="1" effort="9" velocity="9"/>
    <dynamics
       friction = '0.5'   damping="0.25" />
  </joint>
  <link name="thigh"><inertial><origin xyz="0 0 -.1" rpy="0.1 0.2 0.3"/><mass value="2"/>
    <inertia ixx="0.02" ixy="0.001" ixz="0" iyy="0.03" iyz="0.002" izz="0.025"/></inertial></link>
\t<joint type="prismatic" name="knee">
\t\t<parent link="thigh"/> <child link="shank"/> <origin xyz="0 0.02 -0.3" rpy="0.3 -0.2 0.5"/>
\t\t<limit lower="-1" upper="1" effort="9" velocity="9"/>
\t</joint>
  <link name="shank"><inertial><mass value="1"/>
    <inertia ixx="0.01" ixy="0" ixz="0" iyy="0.01" iyz="0" izz="0.01"/></inertial>
    <collision><origin xyz="0 0 -0.1" rpy="1 0 0"/>
      <geometry><cylinder radius="0.02" length="0.2"/></geometry></collision>
  </link>
  <joint name="é&amp;&quot;" type="continuous"><parent link="shank"/><child link="foot"/><axis xyz="0 0 1"/></joint>
  <link name="foot"><inertial><mass value="0.4"/>
    <inertia ixx="0.01" ixy="0" ixz="0" iyy="0.01" iyz="0" izz="0.01"/></inertial></link>
  <transmission name="t"><joint name="hip"><dynamics damping="7"/></joint></transmission>
</robot>
"""
NAMES = ("hip", "knee", 'é&"')
MJCF = """<mujoco>
  <default><joint damping="3" armature="0.5"/><default class='a'><joint frictionloss="2"/></default></default>
  <worldbody>
    <body><joint name="hip" axis="0 1 0"  damping='1e-3'/><geom size=".1"/>
      <body pos="0 0 -.3"><joint class="a" name="knee"></joint><geom size=".1"/></body>
    </body>
    <body pos="1 0 0"><joint name="other"/><geom size=".1"/></body>
  </worldbody>
  <equality><joint joint1="hip" joint2="knee" name="hip"/></equality>
</mujoco>
"""


def friction_of(*names: str) -> tuple[ExportedFriction, ...]:
    return joint_frictions(make_identification(names))


def test_pinocchio_reads_the_exported_friction_from_the_urdf() -> None:
    pinocchio = pytest.importorskip("pinocchio")
    friction = friction_of(*NAMES)
    made = export_friction("urdf", ExportRequest(friction, model=URDF))
    model = pinocchio.buildModelFromXML(made.text.split("?>")[1])
    rows = [model.joints[model.getJointId(name)].idx_v for name in NAMES]
    np.testing.assert_array_equal(model.damping[rows], [joint.coulomb_viscous.viscous for joint in friction])
    np.testing.assert_array_equal(
        model.upperDryFrictionLimit[rows], [joint.coulomb_viscous.coulomb for joint in friction]
    )


def test_mujoco_reads_the_exported_friction_from_the_urdf() -> None:
    mujoco = pytest.importorskip("mujoco")
    friction = friction_of(*NAMES)
    model = mujoco.MjModel.from_xml_string(export_friction("urdf", ExportRequest(friction, model=URDF)).text)
    np.testing.assert_array_equal(model.dof_damping, [joint.coulomb_viscous.viscous for joint in friction])
    np.testing.assert_array_equal(model.dof_frictionloss, [joint.coulomb_viscous.coulomb for joint in friction])


def test_the_urdf_gets_the_identified_bodies_and_what_is_fixed_to_a_link_is_part_of_its_body() -> None:
    pinocchio = pytest.importorskip("pinocchio")
    mass = '<inertial><mass value="0.3"/><inertia ixx="1e-3" iyy="1e-3" izz="1e-3" ixy="0" ixz="0" iyz="0"/></inertial>'
    urdf = ARM.replace('<link name="hand"/>', f'<link name="hand">{mass}</link>')
    model = FixedBaseModel(urdf, ARM_JOINTS)
    heavier = dict(zip(model.standard_names, (1.3 * model.urdf_parameters).tolist(), strict=True))
    request = ExportRequest(friction_of(*ARM_JOINTS), model=urdf, bodies=heavier)
    made = export_friction("urdf", request, inertia="identified")
    arm, still = pinocchio.buildModelFromXML(made.text), pinocchio.buildModelFromXML(urdf)
    for one, other in zip(list(arm.inertias)[1:], list(still.inertias)[1:], strict=True):
        np.testing.assert_allclose(one.toDynamicParameters(), 1.3 * other.toDynamicParameters(), atol=1e-12)
    kept = export_friction("urdf", request).text
    assert 'mass value="0.3"' in kept and 'mass value="0.3"' not in made.text
    with pytest.raises(ConfigError, match="no bodies were identified"):
        export_friction("urdf", ExportRequest(friction_of(*ARM_JOINTS), model=urdf), inertia="identified")
    with pytest.raises(ConfigError, match="'identified', 'urdf'"):
        export_friction("urdf", request, inertia="mine")


def test_every_other_byte_of_the_urdf_stays() -> None:
    hip, knee, last = friction_of(*NAMES)
    expected = URDF.replace("'0.5'", f'"{hip.coulomb_viscous.coulomb!r}"').replace(
        '"0.25"', f'"{hip.coulomb_viscous.viscous!r}"'
    )
    dynamics = '<dynamics damping="{0.viscous!r}" friction="{0.coulomb!r}"/>'
    expected = expected.replace("\n\t</joint>", "\n\t\t" + dynamics.format(knee.coulomb_viscous) + "\n\t</joint>")
    expected = expected.replace('"0 0 1"/></joint>', f'"0 0 1"/>{dynamics.format(last.coulomb_viscous)}</joint>')
    made = export_friction("urdf", ExportRequest((hip, knee, last), model=URDF))
    assert made.text == expected
    assert export_friction("urdf", ExportRequest((hip, knee, last), model=made.text)).text == made.text


def test_what_a_urdf_cannot_express_is_reported() -> None:
    warnings = export_friction("urdf", ExportRequest(friction_of("hip", "toe"), model=URDF)).warnings
    assert warnings[0] == "the URDF has no joint 'toe': left out"
    assert warnings[1] == "a URDF has no place for the drive inertia of hip: left out"
    assert re.fullmatch(
        r"joint 'hip': the law 'load_quadrants' became .* the dependence on load and velocity, .*", warnings[2]
    )
    assert len(warnings) == 3


def test_mujoco_reads_damping_frictionloss_and_armature_from_the_mjcf() -> None:
    mujoco = pytest.importorskip("mujoco")
    hip, knee = friction_of("hip", "knee")
    made = export_friction("mjcf", ExportRequest((hip, knee), model=MJCF))
    model = mujoco.MjModel.from_xml_string(made.text)
    assert model.dof_damping.tolist() == [hip.coulomb_viscous.viscous, knee.coulomb_viscous.viscous, 3.0]
    assert model.dof_frictionloss.tolist() == [hip.coulomb_viscous.coulomb, knee.coulomb_viscous.coulomb, 0.0]
    assert model.dof_armature.tolist() == [DRIVE_INERTIA, 0.5, 0.5]
    before, after = MJCF.splitlines(), made.text.splitlines()
    assert [row for row in range(len(before)) if before[row] != after[row]] == [3, 4]


def test_a_joint_in_mujoco_holds_below_the_identified_friction_moves_above_it_and_stops_as_it_should() -> None:
    mujoco = pytest.importorskip("mujoco")
    (hip,) = friction_of("hip")
    body = '<body><joint name="hip" axis="0 0 1"/><geom size=".3" mass="40"/></body>'
    text = f"<mujoco><worldbody>{body}</worldbody></mujoco>"
    model = mujoco.MjModel.from_xml_string(export_friction("mjcf", ExportRequest((hip,), model=text)).text)
    model.opt.timestep = 1e-3
    coulomb, viscous, inertia = (
        hip.coulomb_viscous.coulomb,
        hip.coulomb_viscous.viscous,
        DRIVE_INERTIA + 0.4 * 40.0 * 0.3**2,
    )

    def turned(torque: float, start: float, steps: int) -> tuple[float, float]:
        data = mujoco.MjData(model)
        data.qvel[0], data.qfrc_applied[0] = start, torque
        mujoco.mj_step(model, data, steps)
        return float(data.qpos[0]), float(data.qvel[0])

    creep = turned(0.8 * coulomb, 0.0, 1000)[0]
    expected = 0.2 * coulomb / viscous  # speed at which viscous friction takes the rest
    assert abs(creep) < 0.01 * expected
    assert turned(1.2 * coulomb, 0.0, 1000 * round(10 * inertia / viscous + 1))[1] == pytest.approx(expected, rel=0.05)
    rate, start = viscous / inertia, 2.0
    stop = np.log1p(viscous * start / coulomb) / rate
    half = round(500 * stop)
    left = (start + coulomb / viscous) * np.exp(-rate * half * 1e-3) - coulomb / viscous
    assert turned(0.0, start, half)[1] == pytest.approx(left, rel=0.05)


SDF = """<sdf version="1.11"><model name="leg"><link name="base"/><link name="thigh"/><link name="shank"/>
  <joint name="hip" type="revolute"><parent>base</parent><child>thigh</child>
    <axis><xyz>0 1 0</xyz><dynamics><friction>9</friction></dynamics></axis></joint>
  <joint name="knee" type="revolute"><parent>thigh</parent><child>shank</child><axis><xyz>0 1 0</xyz></axis></joint>
</model></sdf>"""


def test_gazebo_gets_damping_and_friction_of_the_axis_in_an_sdf_and_the_urdf_it_reads_as_well() -> None:
    hip, knee = friction_of("hip", "knee")
    made = export_friction("gazebo", ExportRequest((hip, knee), model=SDF))
    found = {one.get("name"): one.find("axis/dynamics") for one in ElementTree.fromstring(made.text).iter("joint")}
    for joint in (hip, knee):
        numbers = {child.tag: float(child.text or "") for child in found[joint.joint]}
        assert numbers == {"friction": joint.coulomb_viscous.coulomb, "damping": joint.coulomb_viscous.viscous}
    assert (
        made.text.replace("<friction>9", "") != SDF and "an SDF has no place for the drive inertia" in made.warnings[0]
    )
    request = ExportRequest(friction_of(*NAMES), model=URDF)
    assert export_friction("gazebo", request).text == export_friction("urdf", request).text


@pytest.mark.parametrize("given", [False, True])
def test_drake_gets_damping_and_the_inertia_of_the_rotor(given: bool) -> None:
    hip, knee = friction_of("hip", "knee")
    motor = '<transmission name="t"><joint name="hip"/><actuator name="m"><x/></actuator></transmission></robot>'
    model = URDF.replace("</robot>", motor) if given else URDF
    made = export_friction("drake", ExportRequest((hip, knee), model=model))
    root = ElementTree.fromstring(made.text.encode())
    drive = [one for one in root.findall("transmission") if one.find("actuator") is not None]
    assert [one.find("joint").get("name") for one in drive] == ["hip"]
    tags = {child.tag.rpartition("}")[2]: child.get("value") for child in drive[0].find("actuator")}
    assert float(tags["rotor_inertia"]) == hip.drive_inertia and float(tags["gear_ratio"]) == 1.0
    assert made.warnings[-1] == "Drake has no dry friction of joints: that of hip, knee has no effect there"


def test_isaac_lab_takes_friction_as_efforts_and_armature() -> None:
    hip, knee = friction_of("hip", "knee")
    scope: dict[str, dict[str, dict[str, float]]] = {}
    exec(export_friction("isaac_lab", ExportRequest((hip, knee))).text, scope)
    found = scope["IDENTIFIED"]
    assert (
        found["friction"]
        == found["dynamic_friction"]
        == {"hip": hip.coulomb_viscous.coulomb, "knee": knee.coulomb_viscous.coulomb}
    )
    assert found["viscous_friction"] == {"hip": hip.coulomb_viscous.viscous, "knee": knee.coulomb_viscous.viscous}
    assert found["armature"] == {"hip": DRIVE_INERTIA}


@pytest.mark.parametrize("source", ["leg", "suralp"])
def test_an_mjcf_made_from_a_urdf_moves_as_the_urdf_in_mujoco(source: str) -> None:
    mujoco = pytest.importorskip("mujoco")
    urdf = URDF if source == "leg" else (share_directory() / "urdf" / "suralp.urdf").read_text()
    reference = mujoco.MjModel.from_xml_string(urdf)
    names = [reference.joint(row).name for row in range(reference.njnt)]
    friction = friction_of(*names)
    model = mujoco.MjModel.from_xml_string(export_friction("mjcf", ExportRequest(friction, model=urdf)).text)
    assert [model.joint(row).name for row in range(model.njnt)] == names
    np.testing.assert_allclose(model.jnt_range, reference.jnt_range)
    assert model.dof_damping.tolist() == [joint.coulomb_viscous.viscous for joint in friction]
    assert model.dof_armature[0] == DRIVE_INERTIA
    model.dof_armature[:] = 0.0
    torques = []
    for one in (reference, model):
        random, data = np.random.default_rng(5), mujoco.MjData(one)
        one.dof_damping[:], one.dof_frictionloss[:] = 0.0, 0.0
        one.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT | mujoco.mjtDisableBit.mjDSBL_LIMIT
        data.qpos[:], data.qvel[:], data.qacc[:] = random.normal(size=(3, one.nv))
        mujoco.mj_inverse(one, data)
        torques.append(data.qfrc_inverse.copy())
    np.testing.assert_allclose(torques[1], torques[0], rtol=1e-9, atol=1e-9)
    assert np.abs(torques[0]).min() > 1e-3


SHANK = (
    '<inertial><mass value="1"/>\n    <inertia ixx="0.01" ixy="0" ixz="0" iyy="0.01" iyz="0" izz="0.01"/></inertial>'
)
ROD = '<inertial><mass value="1"/><inertia ixx="0.012" ixy="0" ixz="0" iyy="0" iyz="0" izz="0.012"/></inertial>'


@pytest.mark.parametrize(
    ("inertial", "warning"),
    [
        ("", "MuJoCo moves no link without mass or inertia: shank"),
        (ROD.replace("0.012", "0"), "MuJoCo moves no link without mass or inertia: shank"),
        (ROD, ""),
        (ROD.replace('izz="0.012"', 'izz="0.02"'), "no rigid body has the inertia of shank"),
    ],
)
def test_links_without_extent_and_impossible_ones_load_in_mujoco(inertial: str, warning: str) -> None:
    mujoco = pytest.importorskip("mujoco")
    assert SHANK in URDF
    made = export_friction("mjcf", ExportRequest(friction_of("hip"), model=URDF.replace(SHANK, inertial, 1)))
    mended = [text for text in made.warnings if "inertia" in text and "law" not in text]
    assert [text.startswith(warning) for text in mended] == ([True] if warning else [])
    model = mujoco.MjModel.from_xml_string(made.text)
    shank = model.body("shank").id
    if inertial == ROD:
        np.testing.assert_allclose(np.sort(model.body_inertia[shank]), [0.0, 0.012, 0.012], rtol=1e-6, atol=1e-9)
    assert model.body_inertia[shank].min() > 0.0


def test_a_root_link_called_world_is_the_world() -> None:
    mujoco = pytest.importorskip("mujoco")
    made = export_friction("mjcf", ExportRequest(friction_of("hip"), model=URDF.replace('"base"', '"world"')))
    model = mujoco.MjModel.from_xml_string(made.text)
    assert [model.body(row).name for row in range(model.nbody)] == ["world", "thigh", "shank", "foot"]


def test_collision_primitives_come_into_the_mjcf() -> None:
    mujoco = pytest.importorskip("mujoco")
    made = export_friction("mjcf", ExportRequest(friction_of("hip"), model=URDF))
    model, reference = (mujoco.MjModel.from_xml_string(text) for text in (made.text, URDF))
    np.testing.assert_allclose(model.geom_size, reference.geom_size)
    assert any("<freejoint/> frees it" in text for text in made.warnings)


@pytest.mark.parametrize(
    ("name", "model", "message"),
    [
        ("urdf", "", "'urdf' changes a model: give the URDF of the robot (--model)"),
        (
            "c_header",
            URDF,
            "'c_header' takes no model; the formats that change a model are 'drake', 'gazebo', 'mjcf', 'urdf'",
        ),
        ("sdf", "", f"unknown format 'sdf'; the formats are {', '.join(map(repr, EXPORTER_NAMES))}"),
        ("urdf", URDF.replace("hip", "hop"), "the URDF has none of the joints 'hip'; it has 'hop', 'knee', 'é&\"'"),
        ("urdf", URDF.replace("</robot>", ""), "not valid XML, line 26"),
        ("urdf", MJCF, "not a URDF: its root element is <mujoco>"),
        ("mjcf", "<sdf/>", "neither an MJCF nor a URDF: its root element is <sdf>"),
        ("mjcf", URDF.replace('"continuous"', '"planar"'), "is 'planar'; joints that become MJCF are fixed, revolute"),
        ("mjcf", URDF.replace('child link="foot"', 'child link="base"'), "not one tree"),
        (
            "mjcf",
            URDF.replace('rpy="0.1 0.2 0.3"', 'rpy="0.1 0.2"'),
            "<origin rpy='0.1 0.2'>: expected 3 finite",
        ),
        (
            "mjcf",
            URDF.replace('cylinder radius="0.02"', 'cylinder radius="nan"'),
            "MuJoCo cannot read the URDF: Error: nan size in geom",
        ),
        ("mjcf", URDF.replace('<mass value="2"/>', ""), "'thigh' has an <inertial> without <mass>"),
    ],
)
def test_bad_input_is_one_clear_error(name: str, model: str, message: str) -> None:
    with pytest.raises((ConfigError, RobotModelError), match=re.escape(message)):
        export_friction(name, ExportRequest(friction_of("hip"), model=model))
