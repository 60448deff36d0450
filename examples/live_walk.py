"""Estimate friction sample by sample, as a controller without ROS would: the built-in biped walks for 5 s.

python examples/live_walk.py
"""

import numpy as np

import friction_estimator as fe
from friction_estimator.simulation import Simulator, make_noise, make_scenario

robot = fe.load_robot("suralp")
simulator = Simulator(robot.config, robot.urdf_xml, make_scenario("walk", duration=5.0), make_noise("paper_std"))
estimator = robot.estimator()

knee = estimator.joint_names.index("l_knee")
while simulator.time < simulator.duration:
    sample = simulator.step()
    estimates = []
    for reading in sample.readings:  # your robot: JointSample, ImuSample and WrenchSample with stamps and arrays
        estimates += estimator.add(reading)
    for estimate in estimates:  # one for every joint sample, as soon as the other sensors have caught up
        if estimate.stamp_ns % 500_000_000 == 0:
            print(
                f"{estimate.stamp_ns * 1e-9:5.1f} s  {estimate.phase.name:15}  left knee "
                f"{estimate.friction[knee]:+.3f} +- {estimate.sigma[knee]:.3f} N m, "
                f"true {sample.truth.friction[knee]:+.3f} N m"
            )
print("identified F_c [N m]:", np.round(estimate.law.coulomb, 2))
