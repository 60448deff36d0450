"""Plan a motion of an arm, move along it, identify friction and inertia, and validate on another motion.

    python examples/identify_arm.py

The motion is computed here with known friction; on your robot, play the planned trajectory and record the joint states.
"""

from pathlib import Path

import numpy as np
import pinocchio as pin

import friction_estimator as fe

URDF = Path(__file__).with_name("arm.urdf")
model = pin.buildModelFromUrdf(str(URDF))
data = model.createData()


def record(name: str, seed: int) -> fe.JointLog:
    """Positions and motor torques along a plan: rigid body, Coulomb and viscous friction, noise."""
    plan = fe.plan_excitation(URDF, duration=8.0, seeds=1, seed=seed, max_acceleration=15.0)
    motion = zip(plan.position, plan.velocity, plan.acceleration, strict=True)
    rigid = np.array([pin.rnea(model, data, q, v, a) for q, v, a in motion])
    friction = np.array([1.5, 0.6]) * np.sign(plan.velocity) + np.array([0.8, 0.3]) * plan.velocity
    noise = 0.05 * np.random.default_rng(seed).standard_normal(rigid.shape)
    return fe.JointLog(name, plan.joint_names, plan.time, plan.position, effort=rigid + friction + noise)


result = fe.identify(record("first", seed=1), URDF, law="coulomb_viscous")
for joint, (coulomb, viscous), sigma in zip(result.joint_names, result.values[:, :2], result.sigma, strict=True):
    print(f"{joint:9} F_c {coulomb:.3f} +- {sigma[0]:.3f} N m   F_v {viscous:.3f} +- {sigma[1]:.3f} N m s/rad")
result.save("arm_friction.yaml")  # the live node, replay, report and export read it

for verdict in fe.validate(result, record("second", seed=2), URDF).verdicts:
    print(verdict)
