"""Identify friction and inertia of an arm from a recording, and validate the result on another one.

    python examples/identify_arm.py

The recordings are simulated. With your robot, move along a plan (`fe.plan_excitation`), record the joint states, and
give the paths of your recordings and of your URDF.
"""

import friction_estimator as fe

result = fe.identify(fe.example("arm", seed=1), "arm", law="coulomb_viscous")
for joint, (coulomb, viscous), sigma in zip(result.joint_names, result.values[:, :2], result.sigma, strict=True):
    print(f"{joint:9} F_c {coulomb:.3f} +- {sigma[0]:.3f} N m   F_v {viscous:.3f} +- {sigma[1]:.3f} N m s/rad")
result.save("arm_friction.yaml")  # the live node, replay, report and export read it

for verdict in fe.validate(result, fe.example("arm", seed=2), "arm").verdicts:
    print(verdict)
