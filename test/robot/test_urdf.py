"""Claims about the URDF: every number that the dynamics use is read as it stands, or refused by name."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from friction_estimator.config import config_from_parameters
from friction_estimator.errors import RobotModelError
from friction_estimator.estimation.estimator import Estimator
from friction_estimator.io.robot import package_share, share_directory
from friction_estimator.robot.model import RobotModel
from friction_estimator.robot.urdf import MAX_LINKS, checked_urdf, differing_parts, urdf_warnings

INERTIAL = (
    '<inertial><origin xyz="0 0 0.1" rpy="0 0 0"/><mass value="2"/>'
    '<inertia ixx="0.3" ixy="0" ixz="0" iyy="0.3" iyz="0" izz="0.3"/></inertial>'
)
LEG = (
    f'<robot name="leg"><link name="base">{INERTIAL}</link><link name="shin">{INERTIAL.replace("2", "3")}</link>'
    '<joint name="knee" type="revolute"><parent link="base"/><child link="shin"/><origin xyz="0 0 -1" rpy="0 0 0"/>'
    '<axis xyz="0 1 0"/><limit lower="-1" upper="1" effort="9" velocity="9"/><dynamics damping="0"/></joint></robot>'
)
CONFIG = config_from_parameters({"robot.fixed_base": True, "observer": "momentum"})


def with_inertial(inertial: str) -> str:
    return LEG.replace(INERTIAL.replace("2", "3"), inertial)


@pytest.mark.parametrize("mass", ["nan", "abc", "1,5", "inf", "1e400", "0x10", "1 2", "", " 3 ", "1_0", "٣", "1e300"])
def test_a_mass_that_cannot_be_read_is_refused_by_the_name_of_its_link(mass: str) -> None:
    with pytest.raises(RobotModelError, match=r"link 'shin' has <mass value=.*expected one finite number") as caught:
        RobotModel(CONFIG, LEG.replace('mass value="3"', f'mass value="{mass}"'))
    assert repr(mass) in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('mass value="3"', 'mass value="-3"', "link 'shin' has the mass '-3' kg; a mass is positive, or zero"),
        ('mass value="3"', "mass", "link 'shin' has a <mass> without 'value'"),
        ('ixx="0.3"', 'ixx="0,3"', "link 'base' has <inertia ixx='0,3'>"),
        ('iyz="0"', "", "link 'base' has a <inertia> without 'iyz'"),
        ('<mass value="2"/>', "", "link 'base' has an <inertial> without <mass>"),
        ('xyz="0 0 0.1"', 'xyz="0 0"', "link 'base' has <origin xyz='0 0'>: expected 3 finite numbers"),
        ('xyz="0 0 -1"', 'xyz="0 nan -1"', "joint 'knee' has <origin xyz='0 nan -1'>"),
        ('rpy="0 0 0"/><axis', 'rpy="0,0,0"/><axis', "joint 'knee' has <origin rpy='0,0,0'>"),
        ('xyz="0 1 0"', 'xyz="0 0 0"', "joint 'knee' moves about or along the axis '0 0 0', which has no direction"),
        ('lower="-1"', 'lower="2"', "joint 'knee' has the limits lower = 2 and upper = 1: exchange them"),
        ('effort="9"', 'effort="-9"', "joint 'knee' has the limit effort = '-9'; it cannot be negative"),
        ('<limit lower="-1" upper="1" effort="9" velocity="9"/>', "", "joint 'knee' has no <limit>: add one"),
        ('effort="9"', "", "joint 'knee' has a <limit> without 'effort'"),
        ('damping="0"', 'damping="low"', "joint 'knee' has <dynamics damping='low'>"),
        ("revolute", "hinge", "joint 'knee' is of the type 'hinge'; the types are 'continuous', 'fixed'"),
        (
            'parent link="base"',
            'parent link="bass"',
            "joint 'knee' has the parent link 'bass', not in the URDF",
        ),
        (
            'parent link="base"',
            'parent link="shin"',
            "hang on one another in a circle",
        ),
        ('link name="shin"', 'link name="base"', "the link 'base' is there more than once"),
        ('joint name="knee"', 'joint name="knee&#10;#define"', r"name of the joint is 'knee\\n#define'"),
        ('joint name="knee"', 'joint name=""', "the name of the joint is ''"),
        ('link name="shin"', 'link name="shin&#x2028;"', r"the name of the link is 'shin\\u2028'"),
        ("<robot", '<!DOCTYPE robot [<!ENTITY m "3">]><robot', "declares XML entities"),
    ],
)
def test_what_the_parser_would_drop_or_misread_is_refused_by_name(old: str, new: str, message: str) -> None:
    assert LEG.count(old) >= 1
    with pytest.raises(RobotModelError, match=message):
        RobotModel(CONFIG, LEG.replace(old, new, 1))


def test_plain_numbers_of_every_form_are_read() -> None:
    model = RobotModel(CONFIG, LEG.replace('mass value="3"', 'mass value="+.3e1"').replace("0 0 -1", " 0.\t0\n-1. "))
    assert model.mass == pytest.approx(3.0)
    assert model.warnings == ()


BALL = '<inertial><mass value="{m}"/><inertia ixx="{x}" ixy="{xy}" ixz="0" iyy="{y}" iyz="0" izz="{z}"/></inertial>'


@pytest.mark.parametrize(
    ("inertial", "doubt"),
    [
        (dict(m="1e6", x=1, xy=0, y=1, z=1), "links of more than 1000 kg: shin"),
        (dict(m=1, x=0.1, xy=0, y=0.1, z=0.3), "larger than the sum of the other two, which no rigid body has: shin"),
        (dict(m=1, x=-0.1, xy=0, y=0.1, z=0.1), "a negative moment of inertia, which no rigid body has: shin"),
        (dict(m=1, x=0.1, xy=0.2, y=0.1, z=0.1), "a negative moment of inertia, which no rigid body has: shin"),
        (dict(m=1, x=300, xy=0, y=300, z=300), "a radius of gyration of more than 10 m"),
    ],
)
def test_an_implausible_inertia_is_doubted_by_name_and_used(inertial: dict, doubt: str) -> None:
    urdf = with_inertial(BALL.format(**inertial))
    (warning,) = RobotModel(CONFIG, urdf).warnings
    assert doubt in warning
    assert warning in Estimator(CONFIG, urdf).warnings()


@pytest.mark.parametrize(
    "inertial",
    [
        dict(m=1, x=0.1, xy=0, y=0.1, z=0.2),  # a flat disc
        dict(m=1, x=0, xy=0, y=0, z=0),  # a point
        dict(m=1e-6, x=1e-6, xy=0, y=1e-6, z=3e-6),  # what exporters write for frames
    ],
)
def test_discs_points_and_negligible_inertias_are_not_doubted(inertial: dict) -> None:
    assert RobotModel(CONFIG, with_inertial(BALL.format(**inertial))).warnings == ()


def chain(links: int, kind: str) -> str:
    parts = [f'<link name="l{k}">{INERTIAL}</link>' for k in range(links)]
    parts += [
        f'<joint name="j{k}" type="{kind}"><parent link="l{k - 1}"/><child link="l{k}"/>'
        '<limit lower="-1" upper="1" effort="1" velocity="1"/></joint>'
        for k in range(1, links)
    ]
    return f'<robot name="chain">{"".join(parts)}</robot>'


def test_a_joint_that_moves_no_mass_is_doubted_by_name() -> None:
    (warning,) = RobotModel(
        CONFIG, chain(4, "revolute").replace(INERTIAL + '</link><joint name="j1"', '</link><joint name="j1"')
    ).warnings
    assert warning.startswith("joints that move no mass: j3; give their links an <inertial>")


def test_a_urdf_of_any_size_is_built_or_refused_with_the_limit() -> None:
    with pytest.raises(RobotModelError, match=f"it has 80000 links; robots of up to {MAX_LINKS} links can be read"):
        RobotModel(CONFIG, chain(80_000, "fixed").replace(INERTIAL, ""))
    with pytest.raises(RobotModelError, match="characters; at most 20000000 are read"):
        RobotModel(CONFIG, LEG + " " * 20_000_000)
    joint = '<joint name="j" type="fixed"><parent link="base"/><child link="shin"/></joint>'
    with pytest.raises(RobotModelError, match="it has 20001 joints; robots of up to"):
        RobotModel(CONFIG, LEG.replace("</robot>", 20_000 * joint + "</robot>"))
    with pytest.raises(RobotModelError, match="link 'shin' has <mass value='999") as error:
        RobotModel(CONFIG, LEG.replace('mass value="3"', f'mass value="{100_000 * "9"}"'))
    assert len(str(error.value)) < 300
    with pytest.raises(RobotModelError, match="more than 50 elements inside one another"):
        RobotModel(CONFIG, LEG.replace("</robot>", "<a>" * 100_000 + "</a>" * 100_000 + "</robot>"))
    with pytest.raises(RobotModelError, match="has 999 movable joints, more than 150: name those .* in robot.joints"):
        RobotModel(CONFIG, chain(MAX_LINKS, "revolute"))
    config = config_from_parameters({"robot.fixed_base": True, "observer": "momentum", "robot.joints": ["j1", "j999"]})
    assert RobotModel(config, chain(MAX_LINKS, "revolute")).joint_names == ("j1", "j999")


def test_no_robot_that_people_use_is_refused() -> None:
    folders = package_share("example-robot-data") / "robots", share_directory() / "urdf"
    files = [path for folder in folders for path in sorted(Path(folder).rglob("*.urdf"))]
    assert len(files) > 50
    texts = {path.name: text for path in files if "<link" in (text := path.read_text())}
    doubted = [name for name, text in texts.items() if urdf_warnings(checked_urdf(text))]
    assert len(doubted) < len(files) / 10, doubted
    assert not {"suralp.urdf", "talos_reduced.urdf", "solo12.urdf", "g1_29dof_rev_1_0.urdf"} & set(doubted)


def test_random_damage_of_a_urdf_ends_in_a_model_or_in_a_robot_model_error() -> None:
    """2000 URDFs with one to three random changes."""
    rng = np.random.default_rng(3)
    words = ["nan", "-1", "1e308", '"', "<", ">", "/>", "&#0;", "</link>", "<link/>", " ", "abc", "base", "\ud800", "é"]
    spots = [match.start() for match in re.finditer(r"\W", LEG)]
    built = 0
    for _ in range(2000):
        text = LEG
        for _ in range(rng.integers(1, 4)):
            start = int(rng.choice(spots))
            text = text[:start] + str(rng.choice(words)) + text[start + int(rng.integers(0, 12)) :]
        try:
            model = RobotModel(CONFIG, text)
        except RobotModelError:
            continue
        built += 1
        assert np.isfinite(model.mass)
    assert built > 0


@pytest.mark.parametrize(
    ("before", "after", "named"),
    [
        ('<link name="shin">', '<!-- the same --> <link  name="shin"><visual/>', []),
        ('<mass value="2"/>', '<mass value="2.00"/>', []),
        ('damping="0"', 'damping="1"', []),
        ('<mass value="3"/>', '<mass value="3.1"/>', ["link shin"]),
        ('xyz="0 1 0"', 'xyz="0 -1 0"', ["joint knee"]),
        ('upper="1" effort="9"', 'upper="1" effort="8"', ["joint knee"]),
        ('name="knee"', 'name="l_knee"', ["joint knee", "joint l_knee"]),
    ],
)
def test_two_urdfs_differ_in_the_links_and_joints_whose_dynamics_differ(before, after, named):
    assert before in LEG
    assert differing_parts(LEG, LEG.replace(before, after, 1)) == named
