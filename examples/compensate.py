"""Compensate friction in closed loop: the estimated friction is added to the motor torque of the next period.

python examples/compensate.py
"""

import numpy as np

import friction_estimator as fe
from friction_estimator.simulation import Simulator, make_noise, make_scenario

SETTINGS = {"compensation.enabled": True, "compensation.velocity": "desired"}
DURATION = 8.0


def walk(compensate: bool) -> float:
    """RMS error of the joint positions [rad] in the second half of a walk."""
    robot = fe.load_robot("suralp", SETTINGS)
    simulator = Simulator(robot.config, robot.urdf_xml, make_scenario("walk", DURATION), make_noise("paper_std"))
    estimator = robot.estimator()
    torque, errors = None, []
    while simulator.time < simulator.duration:
        sample = simulator.step(torque if compensate else None)
        estimator.add_command(fe.CommandSample(sample.joints.stamp_ns, sample.reference.velocity))
        for wrench in sample.wrenches:
            estimator.add_wrench(wrench)
        estimator.add_imu(sample.imu)
        for estimate in estimator.add_joints(sample.joints):
            torque = estimate.compensation  # (n,) [N m], zero until the law of a joint is known
        errors.append(sample.reference.position - sample.joints.position)
    return float(np.sqrt(np.mean(np.array(errors[len(errors) // 2 :]) ** 2)))


without, with_compensation = walk(False), walk(True)
print(f"RMS tracking error: {1e3 * without:.2f} mrad without, {1e3 * with_compensation:.2f} mrad with compensation")
