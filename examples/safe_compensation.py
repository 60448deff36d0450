"""Compensation that ends when the estimator is gone, for a controller; the rule is in docs/guides/compensation.md.

python examples/safe_compensation.py
"""

import numpy as np

import friction_estimator as fe
from friction_estimator.compiled import prepare
from friction_estimator.simulation import Simulator, make_noise, make_scenario


class CompensationInput:
    """Torque of the topic friction_compensation. Without fresh messages for `timeout` it falls to zero in `ramp`."""

    def __init__(self, timeout: float = 0.1, ramp: float = 0.05) -> None:
        self._timeout, self._ramp = timeout, ramp
        self._torque, self._gain, self._before, self._fresh_until = 0.0, 0.0, 0.0, 0.0

    def receive(self, torque: np.ndarray, stamp: float, newest_joint_stamp: float, now: float) -> None:
        """Take a message: torque [N m], header stamps of it and of the newest joint states [s], our own clock [s]."""
        if newest_joint_stamp - stamp <= self._timeout:
            self._torque, self._fresh_until = torque, now + self._timeout

    def torque(self, now: float) -> np.ndarray | float:
        """Torque to add to the motor command of this period [N m]."""
        step, self._before = (now - self._before) / self._ramp, now
        self._gain += np.clip((now <= self._fresh_until) - self._gain, -step, step)
        return self._gain * self._torque


if __name__ == "__main__":
    robot = fe.load_robot("suralp", {"compensation.enabled": True, "compensation.velocity": "measured"})
    simulator = Simulator(robot.config, robot.urdf_xml, make_scenario("walk", 6.0), make_noise("paper_std"))
    estimator = fe.Estimator(robot.config, robot.urdf_xml)
    prepare()
    compensation, torque, largest = CompensationInput(), None, {}
    while (now := simulator.time) < simulator.duration:
        sample = simulator.step(torque)
        if now < 4.0:  # then the estimator is killed, while it compensates
            for wrench in sample.wrenches:
                estimator.add_wrench(wrench)
            estimator.add_imu(sample.imu)
            for estimate in estimator.add_joints(sample.joints):
                stamps = 1e-9 * estimate.stamp_ns, 1e-9 * sample.joints.stamp_ns
                compensation.receive(estimate.compensation, *stamps, now)
        torque = compensation.torque(now) * np.ones(len(estimator.joint_names))
        largest[round(now, 3)] = np.abs(torque).max()
    for moment in (3.999, 4.09, 4.16, 5.999):
        print(f"{moment:.3f} s: largest compensation torque {largest[moment]:.2f} N m")
