"""Footsteps after a collision (Lim et al. 2024, section 7): away from the force, or back along the last footprints.

    FrictionEstimate ─► contact, joint positions ─► footprints, duration of a swing ─┐
    Collision, unexpected wrench on the base (eq. 24) ───────────────────────────────┴─► Footsteps

Footsteps are poses in the sole frame of the foot that stands: neither odometry nor a map moves them. The paper gives no
formulas for their size; :meth:`FootstepPlanner.compliant` states what is chosen here.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from friction_estimator.errors import ConfigError
from friction_estimator.robot.model import RobotModel
from friction_estimator.types import Dynamics, FloatArray, FrictionEstimate

_MIN_FORCE = 5.0
"""Horizontal forces below this have no direction: noise of the identified wrench [N]."""
_MAX_FOOTPRINTS = 6
"""Footprints that are kept, and the largest number of footsteps back."""
_STEPS_IN_A_SWING = 2.0
"""A swinging foot passes two step lengths in one step; it goes no faster after a collision."""
_NO_MOTION = np.zeros(3)


class Placement(NamedTuple):
    """A sole in the frame of another one: rotation (3, 3) and position (3,) [m]."""

    rotation: FloatArray
    position: FloatArray


class Footprint(NamedTuple):
    """Where a foot has landed, seen from the foot that stood."""

    foot: int
    place: Placement


@dataclass(frozen=True, slots=True)
class Footsteps:
    """Footsteps to take, with the feet in turn; the first one is of the foot that does not stand."""

    standing: int  # foot whose sole frame the poses are given in
    # (s, 3, 3), (s, 3) of the soles [m]
    rotation: FloatArray
    position: FloatArray


class FootstepPlanner:
    """Follows the footprints of a biped and plans its footsteps after a collision.

    Parameters
    ----------
    robot : the model that the estimator has
    step_length : of the footsteps away from a force [m]

    Raises
    ------
    ConfigError
        When the robot has not two feet.
    """

    def __init__(self, robot: RobotModel, step_length: float) -> None:
        if len(robot.foot_names) != 2:
            raise ConfigError(f"footsteps after a collision need two feet, and this robot has {len(robot.foot_names)}")
        self._robot, self._length = robot, step_length
        self._contact: tuple[bool, ...] = ()
        self._since = (0.0, 0.0)
        self._swing_duration = 0.0
        self._footprints: deque[Footprint] = deque(maxlen=_MAX_FOOTPRINTS)

    def step(self, estimate: FrictionEstimate) -> None:
        """Note, when a foot lands in this estimate, its footprint as seen from the other foot."""
        phase = estimate.phase
        contact, before = tuple(phase.contact.tolist()), self._contact
        if contact != before and before:
            for foot in (0, 1):
                other = 1 - foot
                if contact[other] and before[other] and contact[foot] != before[foot]:
                    self._record_footprint(foot, contact[foot], estimate)
        self._contact, self._since = contact, tuple(phase.since.tolist())

    def _record_footprint(self, foot: int, lands: bool, estimate: FrictionEstimate) -> None:
        """Record the footprint of a foot that lands or lifts off while the other one stands.

        The first lift-off gives the first footprint: that of the foot that goes on standing.
        """
        newest = foot if lands else 1 - foot
        known = bool(self._footprints) and self._footprints[-1].foot == newest
        if known and not lands:
            return
        if known:  # the foot has bounced
            self._footprints.pop()
        if lands:
            self._swing_duration = self._since[foot]
        self._footprints.append(Footprint(newest, _other_sole(self._dynamics(estimate), 1 - newest)))

    def _dynamics(self, estimate: FrictionEstimate) -> Dynamics:
        return self._robot.dynamics(estimate.position, estimate.velocity, _NO_MOTION, _NO_MOTION)

    def _standing(self) -> int | None:
        """The foot that stands; of two that stand, the one that has landed last."""
        if all(self._contact):
            return self._footprints[-1].foot if self._footprints else None
        return self._contact.index(True) if any(self._contact) else None

    def _reachable(self, standing: int, position: FloatArray, goal: FloatArray) -> FloatArray:
        """Place (2,) on the path to a goal that the swinging foot reaches before its swing ends."""
        path, is_swinging = goal - position, not self._contact[1 - standing]
        if not is_swinging or self._swing_duration <= 0.0:
            return goal
        left = max(1.0 - self._since[1 - standing] / self._swing_duration, 0.0)
        return position + path * min(_STEPS_IN_A_SWING * self._length * left / max(float(np.hypot(*path)), 1e-9), 1.0)

    def compliant(self, estimate: FrictionEstimate, force: FloatArray) -> Footsteps | None:
        """Three footsteps along the horizontal part of a force (3,) on the base, base axes; None where no foot stands.

        The first one is as long as the swinging foot can still go, the second one has the step length, and the third
        one sets the feet side by side. To the side only the foot of that side steps out, and the other one closes up.
        """
        standing = self._standing()
        if standing is None or not self._footprints:
            return None
        at = self._dynamics(estimate)
        along = (at.foot_rotation_to_base[standing].T @ force)[:2]
        size = float(np.hypot(*along))
        step = self._length * along / size if size > _MIN_FORCE else np.zeros(2)
        now = _other_sole(at, standing).position[:2]
        side, width = np.sign(now[1]), abs(self._footprints[-1].place.position[1])
        neutral = np.array([0.0, side * width])
        leads = step[1] * side > 0.0
        landing = self._reachable(standing, now, neutral + [step[0], step[1] * leads])
        end = landing - neutral + [step[0], step[1] * (not leads)]
        places = np.zeros((3, 3))
        places[:, :2] = landing, end, neutral + end
        return Footsteps(standing, np.tile(np.eye(3), (3, 1, 1)), places)

    def rewind(self, estimate: FrictionEstimate) -> Footsteps | None:
        """The footprints of the feet in reverse order; None where no foot stands, or there is no footprint yet.

        A swinging foot that cannot go back any more lands where it can, and the foot that stands steps in place.
        """
        standing = self._standing()
        if standing is None or not self._footprints or self._footprints[-1].foot != standing:
            return None
        back: list[Placement] = []
        rotation, position = np.eye(3), np.zeros(3)
        for _, (turn, place) in reversed(self._footprints):
            rotation, position = rotation @ turn.T, position - rotation @ turn.T @ place
            back.append(Placement(rotation, position))
        now = _other_sole(self._dynamics(estimate), standing)
        goal = back[0].position
        landing = self._reachable(standing, now.position[:2], goal[:2])
        if not np.allclose(landing, goal[:2]):
            in_place = Placement(np.eye(3), np.zeros(3))
            back = [Placement(now.rotation, np.append(landing, goal[2])), in_place, *back]
        rotations, positions = zip(*back, strict=True)
        return Footsteps(standing, np.array(rotations), np.array(positions))


def _other_sole(at: Dynamics, foot: int) -> Placement:
    """Sole of the other foot in the sole frame of this one."""
    rotation, position = at.foot_rotation_to_base, at.foot_position_in_base
    to_foot = rotation[foot].T
    return Placement(to_foot @ rotation[1 - foot], to_foot @ (position[1 - foot] - position[foot]))
