"""Describe a robot of your own in a YAML, check it, and use it under its own topic names.

python examples/own_robot.py
"""

import tempfile
from pathlib import Path

import friction_estimator as fe

YAML = """
/**:
  ros__parameters:
    robot:
      urdf: suralp.urdf          # path of your URDF, package://..., or a URDF of this package
    imu: {frame: imu_link, topic: torso/imu}
    feet:
      names: [left, right]
      left: {frame: l_sole, topic: left_sole/wrench, phase: left_support}
      right: {frame: r_sole, topic: right_sole/wrench, phase: right_support}
    sensors: {velocity_std: 0.002}
    output: {joint_states_topic: robot/joint_states}
"""

path = Path(tempfile.mkdtemp()) / "my_biped.yaml"
path.write_text(YAML)
robot = fe.load_robot(path)
estimator = robot.estimator()
print("joints:", ", ".join(estimator.joint_names))
print("feet:  ", ", ".join(estimator.foot_names))

walk = fe.simulate(robot, duration=3.0)
walk.save(path.with_suffix(""))  # a bag with the topics of the YAML, as your robot would record it
result = fe.replay(path.with_suffix(""), robot)
print("RMS error after 1 s [N m]:", result.errors(after=1.0).rmse.round(3))

try:
    fe.load_robot(path, {"feet.names": ["left", "right", "tail"]})
except fe.FrictionEstimatorError as error:
    print("a wrong YAML is refused:", error)
