"""Compensation that ends when the estimator is gone, in a controller; the rule is in docs/guides/compensation.md.

python examples/safe_compensation.py
"""

import numpy as np

import friction_estimator as fe
from friction_estimator.simulation import Simulator, make_noise, make_scenario

robot = fe.load_robot("suralp", {"compensation.enabled": True})
simulator = Simulator(robot.config, robot.urdf_xml, make_scenario("walk", 6.0), make_noise("paper_std"))
estimator = robot.estimator()
# a controller on a robot leaves `clock` out: its own is the monotonic one of the machine
compensation = fe.SafeCompensation(len(estimator.joint_names), clock=lambda: simulator.time)
torque, largest = None, {}
while (now := simulator.time) < simulator.duration:
    sample = simulator.step(torque)
    if now < 4.0:  # then the estimator is killed, while it compensates
        for wrench in sample.wrenches:
            estimator.add_wrench(wrench)
        estimator.add_imu(sample.imu)
        for estimate in estimator.add_joints(sample.joints):
            compensation.receive(estimate.compensation, estimate.stamp_ns, sample.joints.stamp_ns)
    torque = compensation.torque()
    largest[round(now, 3)] = np.abs(torque).max()
for moment in (3.999, 4.03, 4.11, 5.999):
    print(f"{moment:.3f} s: largest compensation torque {largest[moment]:.2f} N m")
