"""Walks of random robots: exact signals of both simulators, kept in files, because simulating takes most of the time.

Sensors are applied to the exact signals when a walk is read (:mod:`benchmarks.random_robots.sensors`).
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import mujoco
import numpy as np

from benchmarks.random_robots.mujoco_friction import ElasticGears, MujocoFriction, set_friction, solved_dry_friction
from benchmarks.random_robots.robots import BUILTIN, IN_MODEL, RandomRobot, draw
from friction_estimator.errors import SimulationError
from friction_estimator.simulation import (
    FrictionSetting,
    Ground,
    ParametrisedLaw,
    Scenario,
    Simulator,
    make_noise,
)
from friction_estimator.simulation.biped import Biped
from friction_estimator.simulation.controller import ControllerGains, JointController, ReferenceGenerator
from friction_estimator.simulation.footsteps import plan_footsteps
from friction_estimator.simulation.physics import Physics
from friction_estimator.simulation.walk_plan import WalkPlan
from friction_estimator.types import BoolArray, FloatArray

DURATION = 20.0
"""Of every walk [s]."""
PERIOD = 1e-3
"""Between the exact signals [s]."""
_VERSION = 2  # of robots and files
_ATTEMPTS = 4
_SUBSTEPS, _ELASTIC_SUBSTEPS = 4, 16  # integration steps a millisecond
_SETTLING = 300
_BLOCK = 200
_LOADED = 0.02  # a foot that carries this part of the weight stands
_FALLEN = 0.5  # part of the height of the base


@dataclass(frozen=True, slots=True)
class Walk:
    """Exact signals, one row a millisecond; of an elastic gear those of the motor.

    Attributes
    ----------
    robot : that walks
    urdf : its true URDF
    joint_names : (n)
    position, velocity, torque, friction : (m, n) [rad], [rad/s], [N m]
    angular_velocity, specific_force : (m, 3) in the frame of the IMU [rad/s], [m/s^2]
    wrenches : (m, k, 6) [N], [N m]
    """

    robot: RandomRobot
    urdf: str
    joint_names: tuple[str, ...]
    position: FloatArray
    velocity: FloatArray
    torque: FloatArray
    friction: FloatArray
    angular_velocity: FloatArray
    specific_force: FloatArray
    wrenches: FloatArray

    @property
    def stance(self) -> BoolArray:
        """Joints whose foot stands (m, n)."""
        standing = self.wrenches[:, :, 2] > _LOADED * 9.81 * self.robot.mass
        return np.repeat(standing, len(self.joint_names) // standing.shape[1], axis=1)


_SIGNALS = ("position", "velocity", "torque", "friction", "angular_velocity", "specific_force", "wrenches")


def walk_file(folder: Path, seed: int, simulator: str) -> Path:
    """File of a walk."""
    return folder / f"{simulator}_{seed:05d}_v{_VERSION}.npz"


def load_walk(folder: Path, seed: int, simulator: str) -> Walk:
    """Read a walk, or simulate it and write its file.

    Raises
    ------
    SimulationError
        When the robot falls in every attempt.
    """
    path = walk_file(folder, seed, simulator)
    if not path.exists():
        walk = simulate(seed, simulator)
        temporary = path.with_suffix(".tmp.npz")
        np.savez(
            temporary, robot=json.dumps(asdict(walk.robot)), urdf=walk.urdf, joint_names=walk.joint_names,
            **{name: getattr(walk, name) for name in _SIGNALS},
        )  # fmt: skip
        temporary.rename(path)
    with np.load(path) as file:
        robot = RandomRobot(**json.loads(str(file["robot"])))
        joint_names = tuple(map(str, file["joint_names"]))
        return Walk(robot, str(file["urdf"]), joint_names, **{name: file[name] for name in _SIGNALS})


def simulate(seed: int, simulator: str) -> Walk:
    """Simulate the walk of a seed; a robot that falls tries again, more easily."""
    for attempt in range(_ATTEMPTS):
        robot = draw(seed, simulator, attempt)
        try:
            return walk_builtin(robot) if simulator == BUILTIN else walk_mujoco(Walker(robot))
        except SimulationError as error:
            last = error
    raise SimulationError(f"robot {seed} of the simulator {simulator} falls in {_ATTEMPTS} attempts: {last}")


def walk_builtin(robot: RandomRobot) -> Walk:
    """Walk in the simulator of the package, which applies friction as a torque."""
    urdf, config = robot.true_urdf(), robot.true_config()
    setting = FrictionSetting(
        leg=(ParametrisedLaw("coulomb_viscous", (1.0, 0.0)),) * 6,
        joints=tuple(zip(config.robot.joints, _builtin_friction(robot), strict=True)),
        sticks=robot.kind not in ("lugre", IN_MODEL),
        presliding=robot.presliding if robot.kind == "lugre" else 0.0,
        ripple=robot.ripple,
        ripples_per_turn=float(robot.teeth[0]) if robot.teeth else 60.0,
    )
    scenario = Scenario("random", DURATION, robot.gait, (setting,))
    simulator = Simulator(config, urdf, scenario, make_noise("clean"), robot.seed)
    samples = [simulator.step() for _ in range(round(DURATION / PERIOD))]
    return Walk(
        robot,
        urdf,
        simulator.joint_names,
        np.array([one.joints.position for one in samples]),
        np.array([one.joints.velocity for one in samples]),
        np.array([one.joints.effort for one in samples]),
        np.array([one.truth.friction for one in samples]),
        np.array([one.imu.angular_velocity for one in samples]),
        np.array([one.imu.specific_force for one in samples]),
        np.array([one.truth.wrenches for one in samples]),
    )


def _builtin_friction(robot: RandomRobot) -> list[ParametrisedLaw]:
    """The kind of friction as a law of the package."""

    def law(dry: float, viscous: float, shape: float) -> ParametrisedLaw:
        if robot.kind == "asymmetric":
            both = (dry * (1.0 + shape), viscous * (1.0 + shape), dry * (1.0 - shape), viscous * (1.0 - shape))
            return ParametrisedLaw("asymmetric", both)
        if robot.kind == "load_dependent":
            largest = 0.2 * robot.mass * 9.81 * 0.7 * robot.length  # motor torque at which this part of it is lost
            return ParametrisedLaw("stribeck_load", (dry, dry, 0.1, viscous, shape / largest))
        if robot.kind == "coulomb_viscous":
            return ParametrisedLaw("coulomb_viscous", (dry, viscous))
        if robot.kind == IN_MODEL:
            return ParametrisedLaw(IN_MODEL, model_law(dry, viscous, shape))
        return ParametrisedLaw("stribeck_load", (dry, shape * dry, robot.stribeck_velocity, viscous, 0.0))

    return [law(*row) for row in zip(robot.dry, robot.viscous, robot.shape, strict=True)]


def model_law(dry: float, viscous: float, shape: float) -> tuple[float, ...]:
    """Parameters of the kind ``IN_MODEL``, without its steepest terms: the built-in simulator wants smooth friction."""
    return 0.0, 0.0, shape * dry, (1.0 - shape) * dry, 0.3 * dry, 0.0, viscous, 0.01, 0.0


def walk_mujoco(walker: Walker) -> Walk:
    """Walk with the friction of MuJoCo; the controller runs at the rate of the joint sensors and holds its torque."""
    rows = [walker.step(k) for k in range(-_SETTLING, round(DURATION / PERIOD))][_SETTLING:]
    position, velocity, torque, friction, imu, wrenches = (np.array(column) for column in zip(*rows, strict=True))
    signals = position, velocity, torque, friction, imu[:, 3:], imu[:, :3], wrenches
    return Walk(walker.robot, walker.urdf, walker.joint_names, *signals)


class Walker:
    """Plan and controller of the package, and MuJoCo with the friction of MuJoCo.

    Attributes
    ----------
    physics, friction : of MuJoCo; what a study changes while the robot walks
    """

    def __init__(self, robot: RandomRobot) -> None:
        self.robot, self.urdf, config, gait = robot, robot.true_urdf(), robot.true_config(), robot.gait
        self._hold = 1000 // robot.rates[0]
        self._substeps = _ELASTIC_SUBSTEPS if robot.stiffness else _SUBSTEPS
        biped = Biped(config, self.urdf)
        self.joint_names = config.robot.joints
        self._columns = np.array([biped.column(name) for name in self.joint_names])
        size = biped.dimensions(gait.leg_extension)
        steps = plan_footsteps(gait, size.half_width, DURATION + 3.0)
        middle = len(steps) // 2
        steps[middle:] = [replace(step, start=step.start + robot.pause) for step in steps[middle:]]
        plan = WalkPlan(gait, size, DURATION, footsteps=steps)
        self._references = ReferenceGenerator(biped, plan, PERIOD)
        self._references.check_reach(0.0, DURATION)
        self._controller = JointController(biped, ControllerGains(), PERIOD * self._hold)
        self.physics = physics = Physics(biped, config, self.urdf, PERIOD / self._substeps)
        self._model, self._data = physics.model, physics.data
        self._model.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
        self._dofs = np.array([self._model.joint(name).dofadr[0] for name in biped.joint_names])
        self.friction = MujocoFriction(robot)
        self._torque: FloatArray = np.zeros(len(biped.joint_names))
        self._block = block = self._references.block(0, _BLOCK)
        physics.place(block.base[0], float(block.base_yaw[0]), block.position[0])
        for foot in biped.feet:
            physics.lay(foot, Ground().incline(0.0, 0.0))
        self._gears: ElasticGears | None = None
        if robot.stiffness:
            self._model.dof_armature[self._dofs] = 0.0
            self._gears = ElasticGears(robot, physics.position)

    def step(self, k: int) -> tuple[FloatArray, ...]:
        """One millisecond: position, velocity, torque, friction, IMU and wrenches at its beginning."""
        physics, row = self.physics, max(k, 0) % _BLOCK
        if k > 0 and row == 0:
            self._block = self._references.block(k, _BLOCK)
        position, velocity = self._motor_state()
        if k % self._hold == 0:
            pose, twist = physics.base_pose, physics.base_twist
            if pose[2] < _FALLEN * self._block.base[row, 2]:
                raise SimulationError(f"the robot fell at {k * PERIOD:.1f} s")
            self._torque = self._controller.torque(
                self._block, row if k >= 0 else 0, position, velocity, pose[3:], twist[3:], np.zeros(position.size)
            )
        friction = self._advance()
        signals, wrenches = physics.signals(position, velocity, self._torque, self._columns)
        imu = signals[3 * self._columns.size : 3 * self._columns.size + 6].copy()
        wrenches = wrenches.copy()
        for _ in range(self._substeps - 1):
            self._advance()
        joints = self._columns
        return position[joints], velocity[joints], self._torque[joints], friction[joints], imu, wrenches

    def _motor_state(self) -> tuple[FloatArray, FloatArray]:
        motors = self._gears or self.physics
        return motors.position.copy(), motors.velocity.copy()

    def _advance(self) -> FloatArray:
        """One integration step; return the friction in it (n,)."""
        dt = PERIOD / self._substeps
        position, velocity = self._motor_state()
        form = self.friction.form(position, velocity, self._torque, dt)
        if self._gears is not None:
            at_joint = self.physics.position, self.physics.velocity
            spring, friction = self._gears.step(self._torque, form, *at_joint, dt)
            self.physics.advance(spring)
            return friction
        set_friction(self._model, self._dofs, form)
        self.physics.advance(self._torque - form.known)
        return form.known + form.damping * velocity + solved_dry_friction(self._model, self._data, self._dofs)
