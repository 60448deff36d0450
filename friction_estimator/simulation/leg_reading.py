"""Finding the legs of a URDF: which joint is which, and how long the limbs are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pinocchio as pin

from friction_estimator.errors import SimulationError
from friction_estimator.simulation.leg_chain import LegChain
from friction_estimator.simulation.leg_kinematics import ANKLE_PITCH, HIP_PITCH, KNEE, Leg
from friction_estimator.types import FloatArray

_GROUPS = (((0, 1, 2), "zxy"), ((3,), "y"), ((4, 5), "yx"))
_AXES = "xyz"
_LEAST_ALIGNED = 0.8  # cosine between an axis and the one it stands for
_TOLERANCE = 1e-6


def read_leg(model: pin.Model, sole_frame: str) -> Leg:
    """Measure one leg of a floating-base model at its zero configuration.

    Raises
    ------
    SimulationError
        When the frame is missing or the leg is not of the kind that the built-in gait can walk with.
    """
    if not model.existFrame(sole_frame):
        raise SimulationError(f"the URDF has no frame {sole_frame!r}")
    frame_id = model.getFrameId(sole_frame)
    chain = tuple(j for j in model.supports[model.frames[frame_id].parentJoint] if j > 1)
    data = model.createData()
    pin.framesForwardKinematics(model, data, pin.neutral(model))
    jacobian = pin.computeJointJacobians(model, data, pin.neutral(model))
    joints, signs = _roles(model, chain, [jacobian[3:, model.idx_vs[j]] for j in chain], sole_frame)
    pitch, knee, ankle = (data.oMi[joints[role]].translation for role in (HIP_PITCH, KNEE, ANKLE_PITCH))
    hip, sole = np.array([pitch[0], knee[1], pitch[2]]), data.oMf[frame_id]
    if sole.rotation.trace() < 1.0 + 2.0 * _LEAST_ALIGNED:
        raise SimulationError(f"the sole frame {sole_frame!r} must look forward (x) and up (z) at zero")
    thigh_pitch, shank_pitch = _pitch(knee - hip), _pitch(ankle - knee)
    sole_pitch = float(np.arctan2(sole.rotation[0, 2], sole.rotation[2, 2]))
    zero = np.array([0.0, 0.0, thigh_pitch, shank_pitch - thigh_pitch, sole_pitch - shank_pitch, 0.0])
    points = [data.oMi[j].translation for j in chain]
    meets = np.concatenate([points[1] - hip, points[2] - hip, points[0] - hip, points[5] - ankle, zero])
    axes = [jacobian[3:, model.idx_vs[j]] for j in joints]
    nominal = (
        joints == chain
        and np.allclose(axes, np.eye(3)[[2, 0, 1, 1, 1, 0]], atol=_TOLERANCE)
        and np.abs(meets).max() < _TOLERANCE
        and abs(float(ankle[1] - knee[1])) < _TOLERANCE
        and np.allclose(sole.rotation, np.eye(3), atol=_TOLERANCE)
    )
    return Leg(
        joint_names=tuple(model.names[j] for j in joints),
        columns=np.array([model.idx_vs[j] - 6 for j in joints]),
        frame_id=frame_id,
        hip=hip,
        thigh=float(np.hypot(*(knee - hip)[[0, 2]])),
        shank=float(np.hypot(*(ankle - knee)[[0, 2]])),
        sole=sole.rotation.T @ (sole.translation - ankle),
        signs=signs,
        zero=np.zeros(6) if nominal else zero,
        chain=None if nominal else LegChain(model, joints, sole_frame),
    )


def _roles(
    model: pin.Model, chain: tuple[int, ...], axes: Sequence[FloatArray], sole_frame: str
) -> tuple[tuple[int, ...], FloatArray]:
    """Joints from hip yaw to ankle roll, and the signs of their axes."""
    joints: list[int] = []
    signs: list[float] = []
    for places, wanted in _GROUPS if len(chain) == 6 else ():
        for axis in wanted:
            component = [axes[place][_AXES.index(axis)] for place in places]
            best = int(np.argmax(np.abs(component)))
            if abs(component[best]) > _LEAST_ALIGNED:
                joints.append(chain[places[best]])
                signs.append(float(np.sign(component[best])))
    if len(joints) != 6:
        raise SimulationError(
            f"the built-in gait needs six joints from the base to {sole_frame!r}: three at the hip turning about z, x "
            "and y in any order, a knee about y, two at the ankle about y and x in any order; "
            f"found {[model.names[j] for j in chain]}"
        )
    return tuple(joints), np.array(signs)


def _pitch(limb: FloatArray) -> float:
    """How far a hanging limb is turned about y [rad]."""
    return float(np.arctan2(-limb[0], -limb[2]))
