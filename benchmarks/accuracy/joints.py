"""Which joints share a column of the tables: the same joint of both legs, or every joint for itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from friction_estimator.types import BoolArray, IntArray

_Number = TypeVar("_Number", bound=np.generic)


@dataclass(frozen=True, slots=True)
class JointGroups:
    """Columns of the tables.

    Attributes
    ----------
    labels : (g) one a column
    members : (g, s) joint indices of each column
    """

    labels: tuple[str, ...]
    members: IntArray

    def fold(self, values: NDArray[_Number]) -> NDArray[_Number]:
        """Samples of every joint (m, n) as samples of every column (m * s, g)."""
        return values[:, self.members.T].reshape(-1, len(self.labels))


def joint_groups(joint_names: Sequence[str], limb: BoolArray) -> JointGroups:
    """Pair the joints of limbs that look alike.

    Parameters
    ----------
    joint_names : (n)
    limb : (k, n) True where a joint lies between the base and that foot

    Returns
    -------
    JointGroups
        The i-th joints of all limbs together, when the limbs share no joint, are equally long, leave no joint out and
        the names of each group share a word (``l_knee``, ``r_knee``); else every joint for itself.
    """
    chains = [np.flatnonzero(row) for row in limb]
    alone = JointGroups(tuple(joint_names), np.arange(len(joint_names))[:, None])
    once_each = limb.size > 0 and bool((limb.sum(axis=0) == 1).all())
    if not once_each or len({chain.size for chain in chains}) != 1:
        return alone
    members = np.array(chains).T
    labels = tuple(_common_words([joint_names[joint] for joint in group]) for group in members)
    if not all(labels) or len(set(labels)) < len(labels):
        return alone
    return JointGroups(labels, members)


def _common_words(names: Sequence[str]) -> str:
    """``hip yaw`` of ``l_hip_yaw`` and ``r_hip_yaw``, ``leg 1 joint`` of ``leg_left_1_joint`` and its mirror image."""
    return " ".join(
        words[0] for words in zip(*(name.split("_") for name in names), strict=False) if len(set(words)) == 1
    )
