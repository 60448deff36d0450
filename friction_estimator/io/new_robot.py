"""The YAML of a new robot: feet, IMU and waist guessed from the URDF, topics from a bag.

A guess is shown before it is used, so each one has its reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from friction_estimator.config import OutputConfig
from friction_estimator.errors import RobotModelError
from friction_estimator.io.bags.reader import BagReader
from friction_estimator.io.documents import nested, yaml_text
from friction_estimator.messages.topics import IMU, JOINT_STATE, WRENCH
from friction_estimator.robot.model import link_positions
from friction_estimator.robot.urdf import joint_link, movable_joints, parse_urdf

_FOOT_WORDS = ("sole", "foot", "toe", "ankle")
"""Words in the names of links that stand on the ground, those that most likely mean the sole first."""
_OTHER_WORDS = re.compile(r"hand|finger|thumb|wrist|arm(?!a)|gripper|head|camera|rotor|imu|gyro", re.IGNORECASE)
_LEFT, _RIGHT = {"left", "l", "lf", "fl", "lh", "hl", "rl", "bl"}, {"right", "r", "rf", "fr", "rh", "hr", "rr", "br"}
_FRONT = {"front", "lf", "fl", "rf", "fr"}
"""Words of names, as they are usual for sides and ends: ``rl`` is the rear left leg, ``rh`` the right hind leg."""
_FOOT_HEIGHT_SHARE = 0.15
"""Part of the robot's height in which links without a telling name are feet."""
_LEAST_SURFACE_JOINTS = 5
"""A leg with fewer joints cannot choose how its foot lies on the ground: a point contact."""


@dataclass(slots=True)
class NewRobot:
    """Guessed parameters of a new robot for its YAML, with a reason for each choice."""

    parameters: dict[str, Any] = field(default_factory=dict)  # flat parameters, as in config_from_parameters
    reasons: list[str] = field(default_factory=list)  # one sentence for each choice

    def yaml(self, name: str) -> str:
        """Text of the YAML, with the reasons as its first lines."""
        notes = "".join(f"# - {reason}\n" for reason in self.reasons)
        document = {"/**": {"ros__parameters": nested(self.parameters)}}
        return f"# {name}: guessed from its URDF; check every line.\n{notes}{yaml_text(document)}"


def guess_robot(urdf_xml: str, urdf: str, bag: BagReader | None = None) -> NewRobot:
    """Guess the parameters of a robot.

    Parameters
    ----------
    urdf_xml : text of the URDF
    urdf : its path, as the YAML has it
    bag : a recording of the robot; its frames and topics are taken

    Raises
    ------
    RobotModelError
        When the URDF is refused, has no joint that moves, or its IMU moves with a joint of a leg.
    BagError
        When messages of the bag cannot be read.
    """
    tree = _Tree(urdf_xml)
    if not tree.moving:
        raise RobotModelError(
            f"{urdf} has no joint that moves, so there is no friction to estimate: give a URDF with at least one "
            "revolute, continuous or prismatic joint"
        )
    robot = NewRobot({"robot.urdf": urdf})
    recorded = {} if bag is None else _first_messages(bag)
    feet = _feet(tree, robot)
    if not feet:
        robot.parameters |= {"robot.fixed_base": True, "observer": "momentum"}
        robot.reasons += [
            "No link looks like a foot, so the base is taken to be fixed: an arm needs no IMU.",
            "The observer is momentum, which takes half the computing time and needs no priors of sensor errors. The "
            "observer kalman works here too, and estimates errors of torques and links as well: compare both.",
        ]
    else:
        _imu(tree, feet, recorded, robot)
    _joints(tree, recorded, robot)
    for name, frame in feet.items():
        _foot(tree, name, frame, recorded, robot)
    return robot


class _Tree:
    """Links and joints of a URDF, with the place of each link where all joints are at zero."""

    def __init__(self, urdf_xml: str) -> None:
        root = parse_urdf(urdf_xml)
        self.joints = {str(joint.get("name")): joint for joint in root.findall("joint")}
        self.above = {joint_link(joint, "child"): name for name, joint in self.joints.items()}
        links = [str(link.get("name")) for link in root.findall("link")]
        self.root = next(link for link in links if link not in self.above)
        self.moving = movable_joints(root)
        self.chain = {link: [name for name in self._chain(link) if name in self.moving] for link in links}
        self.position = link_positions(urdf_xml, links)

    def _chain(self, link: str) -> Iterator[str]:
        """All joints between a link and the root, the nearest first."""
        while link in self.above:
            yield self.above[link]
            link = joint_link(self.joints[self.above[link]], "parent")


def _feet(tree: _Tree, robot: NewRobot) -> dict[str, str]:
    """Frame of each foot by its name."""
    bodies: dict[str, list[str]] = {}  # links that move together, by the joint that moves them
    for link, chain in tree.chain.items():
        if chain:
            bodies.setdefault(chain[0], []).append(link)
    named = [
        joint for joint, links in bodies.items() if any(_foot_word_rank(link) < len(_FOOT_WORDS) - 1 for link in links)
    ]
    by_name = bool(named)
    if not by_name:
        named = _lowest(tree, bodies)
    legs = {joint: tree.chain[bodies[joint][0]] for joint in named}
    ends = [joint for joint, chain in legs.items() if not any(other in chain[1:] for other in named)]
    frames = [
        min(bodies[joint], key=lambda link: (_foot_word_rank(link), tree.position[link][2], link)) for joint in ends
    ]
    frames.sort(key=lambda link: (-round(float(tree.position[link][0]), 2), -float(tree.position[link][1])))
    named_frames = zip(_foot_names(tree, frames), frames, strict=True)
    feet = dict(sorted(named_frames, key=lambda one: (one[0][1:2] == "h", one[0])))  # front before hind, left first
    if feet:
        how = "by their names" if by_name else "as the lowest links"
        robot.reasons.append(
            f"Feet found {how}: {', '.join(feet.values())}. Check that the wrench of each is in this frame."
        )
    return feet


def _foot_word_rank(link: str) -> int:
    """Rank of a link as a foot: the first of ``_FOOT_WORDS`` in its name; their number for none, a hand, a sensor."""
    if _OTHER_WORDS.search(link):
        return len(_FOOT_WORDS)
    return next((k for k, word in enumerate(_FOOT_WORDS) if word in link.lower()), len(_FOOT_WORDS))


def _lowest(tree: _Tree, bodies: Mapping[str, Sequence[str]]) -> list[str]:
    """Joints of the lowest links, when these hang well below the root."""
    height = {link: float(position[2]) for link, position in tree.position.items()}
    low, high = min(height.values()), max(height.values())
    if height[tree.root] < low + 2.0 * _FOOT_HEIGHT_SHARE * (high - low):
        return []
    found = [
        joint
        for joint, links in bodies.items()
        if min(map(height.__getitem__, links)) < low + _FOOT_HEIGHT_SHARE * (high - low)
    ]
    inner = {joint for end in found for joint in tree.chain[bodies[end][0]][1:]}
    ends = [joint for joint in found if joint not in inner]
    return ends if len(ends) > 1 else []


def _foot_names(tree: _Tree, frames: Sequence[str]) -> list[str]:
    sides = [_side(frame) or ("l" if tree.position[frame][1] > 0.0 else "r") for frame in frames]
    if sorted(sides) == ["l", "r"]:
        return [f"{side}_foot" for side in sides]
    if sorted(sides) == ["l", "l", "r", "r"]:
        front = [frame for frame in frames if _FRONT & _words(frame)] or frames[:2]  # frames are sorted from the front
        names = [f"{side}{'f' if frame in front else 'h'}_foot" for side, frame in zip(sides, frames, strict=True)]
        if len(set(names)) == len(names):
            return names
    return [re.sub(r"\W", "_", f"foot_{frame}" if frame[:1].isdigit() else frame) for frame in frames]


def _side(name: str) -> str:
    """``l`` or ``r`` by the words of a name; empty when it has none, or both."""
    words = _words(name)
    left, right = bool(words & _LEFT), bool(words & _RIGHT)
    return "" if left == right else "l" if left else "r"


def _words(name: str) -> set[str]:
    return {word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)}


def _imu(tree: _Tree, feet: Mapping[str, str], recorded: Mapping[str, Any], robot: NewRobot) -> None:
    """Choose frame and topic of the IMU: the one nearest to the root link that no leg moves."""
    topics = {topic: message for topic, message in recorded.items() if message.__msgtype__ == IMU}
    frames = {message.header.frame_id: topic for topic, message in topics.items()}
    legs = {joint for frame in feet.values() for joint in tree.chain[frame]}
    candidates = [frame for frame in frames if frame in tree.chain] or [
        link for link in tree.chain if re.search(r"(^|[^a-z])imu|gyro|accelero", link, re.IGNORECASE)
    ]
    fit = [link for link in candidates if not legs & set(tree.chain[link])]
    if candidates and not fit:
        raise RobotModelError(
            f"the IMU {candidates[0]!r} moves with {tree.chain[candidates[0]][0]!r}, a joint of a leg, and there is no "
            "other; the estimator needs an IMU on the trunk: write its link into the URDF, with 'imu' in the name"
        )
    frame = min(fit, key=lambda link: (len(tree.chain[link]), link), default=tree.root)
    topic = frames.get(frame) or next(iter(topics), "imu/data")
    robot.parameters |= {"imu.frame": frame, "imu.topic": topic.lstrip("/")}
    how = "by its messages" if frame in frames else "by its name" if fit else "no link has such a name; check the axes"
    robot.reasons.append(f"IMU taken to be in {frame}: {how}.")
    _other_name(tree, "imu", topics.get(topic), robot)


def _joints(tree: _Tree, recorded: Mapping[str, Any], robot: NewRobot) -> None:
    """Choose joints and the topic of their states."""
    states = {topic: message for topic, message in recorded.items() if message.__msgtype__ == JOINT_STATE}
    if states:
        topic = max(states, key=lambda one: len(set(states[one].name) & set(tree.moving)))
        names = set(states[topic].name)
        missing = [joint for joint in tree.moving if joint not in names]
        if topic.lstrip("/") != OutputConfig().joint_states_topic:
            robot.parameters["output.joint_states_topic"] = topic.lstrip("/")
        if missing:
            robot.reasons.append(f"{topic} lacks these joints, which are locked: {', '.join(missing)}.")
            robot.parameters["robot.joints"] = [joint for joint in tree.moving if joint in names]
        if not len(states[topic].effort):
            robot.reasons.append(f"{topic} has no efforts: without motor torques no friction can be estimated.")


def _foot(tree: _Tree, name: str, frame: str, recorded: Mapping[str, Any], robot: NewRobot) -> None:
    """Parameters of one foot."""
    wrenches = {topic: message for topic, message in recorded.items() if message.__msgtype__ == WRENCH}
    chain, prefix = tree.chain[frame], f"feet.{name}"
    by_frame = [
        topic
        for topic, message in wrenches.items()
        if tree.chain.get(message.header.frame_id, ())[:1] == chain[:1] and chain
    ]
    by_name = [topic for topic in wrenches if name in topic or (len(wrenches) == 2 and _side(topic) == name[0])]
    topic = next(iter(by_frame or by_name), f"{name}/wrench")
    if by_frame:
        frame = wrenches[topic].header.frame_id
    robot.parameters.setdefault("feet.names", []).append(name)
    robot.parameters |= {f"{prefix}.frame": frame, f"{prefix}.topic": topic.lstrip("/")}
    _other_name(tree, prefix, wrenches.get(topic), robot)
    if name in ("l_foot", "r_foot"):
        robot.parameters[f"{prefix}.phase"] = "left_support" if name == "l_foot" else "right_support"
    if len(chain) < _LEAST_SURFACE_JOINTS:
        robot.parameters[f"{prefix}.contact"] = "point"
    if wrenches and not by_frame:
        robot.reasons.append(
            f"The wrench of {name} is taken from {topic.lstrip('/')}"
            + (", by its name." if by_name else ", which is not in the bag.")
        )


def _other_name(tree: _Tree, section: str, message: Any, robot: NewRobot) -> None:
    """Accept messages whose frame is not in the URDF, as another name of the frame of the sensor."""
    if message is not None and message.header.frame_id and message.header.frame_id not in tree.chain:
        robot.parameters[f"{section}.message_frame"] = message.header.frame_id
        robot.reasons.append(
            f"The frame of the messages, {message.header.frame_id}, is not in the URDF: check that "
            f"{robot.parameters[f'{section}.frame']} ({section}.frame) has the same axes."
        )


def _first_messages(bag: BagReader) -> dict[str, Any]:
    """First message of every topic of a sensor."""
    wanted = {topic for topic, kind in bag.topics.items() if kind in (JOINT_STATE, IMU, WRENCH)}
    found: dict[str, Any] = {}
    for message in bag.messages(wanted):
        if message.topic not in found:
            found[message.topic] = bag.decode(message)
            if len(found) == len(wanted):
                break
    return found
