"""What can be told of friction where motors move joints together, in words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from friction_estimator.identification.inverse_dynamics.options import JOINTS_AND_MOTORS
from friction_estimator.identification.regression.lack_of_fit import velocity_dependent_rms, without_velocity
from friction_estimator.identification.regression.verdict import Finding
from friction_estimator.identification.result import FrictionSamples
from friction_estimator.identification.rigid_body.sites import FrictionSite
from friction_estimator.laws import make_law
from friction_estimator.laws.identified import IdentifiedParameters
from friction_estimator.robot.transmission import Transmission

OWN_FRICTION = (
    "{}: friction of the motors leaves {:.2g} N m RMS that go with the velocity of the joint, {:.0%} of its friction: "
    "the joint has friction of its own (coupled friction {!r}), or the coupling is another one"
)
PROJECTED = (
    "{} {} friction to several joints; the file has one law a joint, for a robot without robot.coupling, which leaves "
    "{}: all of it is in the table of parameters only"
)
_WORTH_TELLING = 0.05
"""Share of the friction of a joint that its motors leave."""


def about_joints_of_motors(
    samples: Sequence[FrictionSamples], motors: Transmission, joint_names: Sequence[str]
) -> list[Finding]:
    """Joints whose friction is not all of their motors.

    Parameters
    ----------
    samples : (n) friction of the motors, at the same instants
    motors, joint_names : (n)
    """
    velocity, fitted, used = (
        np.column_stack([getattr(one, name) for one in samples]) for name in ("velocity", "fitted", "used")
    )
    left = np.column_stack([without_velocity(one.velocity, one.friction - one.fitted) for one in samples])
    velocity, fitted, left = velocity @ motors.matrix.T, motors.at_joints(fitted), motors.at_joints(left)
    usable = np.asarray(used[:, motors.group].all(axis=2))
    several = np.maximum(np.count_nonzero(motors.matrix, axis=1), np.count_nonzero(motors.weights, axis=1)) > 1
    found = []
    for joint in map(int, np.flatnonzero(several)):
        rows = usable[:, joint]
        rms = velocity_dependent_rms(velocity[rows, joint], left[rows, joint])
        size = float(np.sqrt(np.mean(fitted[rows, joint] ** 2))) if rows.any() else 0.0
        if rms > _WORTH_TELLING * size > 0.0:
            found.append(Finding(1.16, OWN_FRICTION.format(joint_names[joint], rms, rms / size, JOINTS_AND_MOTORS)))
    return found


def about_projection(
    samples: Sequence[FrictionSamples], added: Sequence[FrictionSite], live: IdentifiedParameters
) -> list[Finding]:
    """What the laws of the joints cannot say of motors that add to several of them.

    Parameters
    ----------
    samples : (n) friction of the joints
    added : motors that add to it; none: nothing is said
    live : (n) one law a joint
    """
    lost = []
    for joint, seen in enumerate(samples):
        if any(site.direction[joint] != 0.0 for site in added):
            law = make_law(live.law_names[joint])
            values = live.values[joint, None, : len(law.parameter_names)]
            rest = seen.fitted - law.torque(values, seen.velocity, seen.load)
            lost.append(f"{np.std(rest[seen.used]):.2g} N m RMS of {seen.joint}" if seen.used.any() else seen.joint)
    if not lost:
        return []
    names = ", ".join(site.name for site in added)
    return [Finding(1.06, PROJECTED.format(names, "adds" if len(added) == 1 else "add", " and ".join(lost)))]
