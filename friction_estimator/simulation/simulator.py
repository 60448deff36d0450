"""The simulated robot, one control period at a time: what a robot driver would deliver, with ground truth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import mujoco
import numpy as np

from friction_estimator.config import Config
from friction_estimator.errors import SimulationError
from friction_estimator.io.export.robot_models import STICTION_IMPEDANCE, STICTION_REFERENCE
from friction_estimator.robot.transmission import Transmission
from friction_estimator.robot.urdf import checked_urdf
from friction_estimator.simulation.biped import Biped
from friction_estimator.simulation.controller import (
    ControllerGains,
    JointController,
    ReferenceBlock,
    ReferenceGenerator,
)
from friction_estimator.simulation.footsteps import FloorSchedule, FootPose
from friction_estimator.simulation.friction import InjectedFriction
from friction_estimator.simulation.physics import Physics, drop_meshes
from friction_estimator.simulation.scenario import Scenario
from friction_estimator.simulation.sensors import NoiseLevel, SensorModel
from friction_estimator.simulation.walk_plan import WalkPlan
from friction_estimator.types import FloatArray, GroundTruth, ImuSample, IntArray, JointSample, Reading, WrenchSample

PERIOD_NS = 1_000_000  # control period [ns]
_PERIOD = PERIOD_NS * 1e-9
_SUBSTEP_RANGE = (2, 4)  # smallest and largest number of integration steps in a control period
_MAX_DECAY = 1.5  # part of a free joint's velocity that friction may take in one integration step; 2 is unstable
_BLOCK_PERIODS = 200  # control periods whose references are computed at once
_SETTLING_PERIODS = 300  # control periods at rest before time starts
_CHECKED_TIME = 12.0  # length of the walk whose poses are checked before it starts [s]
_FALLEN_DEPTH = 0.5  # the robot has fallen when its base is this part of its height too low,
_FALLEN_LEAN = 0.4  # or when 1 - cos(tilt) of the base exceeds this
_GAINS = ControllerGains()


@dataclass(frozen=True, slots=True)
class Reference:
    """Reference motion of the controller at the stamp of the sample."""

    position: FloatArray  # (n,) of the joints [rad]
    velocity: FloatArray  # (n,) [rad/s]
    com_in_world: FloatArray  # (3,) centre of mass of the planned base pose and joint positions [m]


@dataclass(frozen=True, slots=True)
class SimulationSample:
    """One control period; without stamp jitter all stamps are equal.

    At stamp t: position, velocity and the truth's base pose and twist are the state at t. Effort, friction, wrenches
    and specific force are what acts on the robot from t on: the motor torque computed at t, held until the next stamp;
    the friction law at the velocity of t and the dry friction that the solver found; contact forces and accelerations
    that follow from these. The friction follows the velocity within the period (it is evaluated anew at every
    integration step), so the truth is its value at t, not its mean over the period.

    ``delivered`` holds whether joints, IMU and feet deliver a sample in this period; slower sensors do not always.
    The stamp of the truth is that of the joint sample.
    """

    joints: JointSample
    imu: ImuSample
    wrenches: tuple[WrenchSample, ...]
    truth: GroundTruth
    reference: Reference
    delivered: tuple[bool, bool, bool] = (True, True, True)

    @property
    def readings(self) -> tuple[Reading, ...]:
        """Samples that the sensors deliver: wrenches, IMU, joints."""
        joints, imu, feet = self.delivered
        return (*(self.wrenches if feet else ()), *((self.imu,) if imu else ()), *((self.joints,) if joints else ()))


class Simulator:
    """Walking biped in MuJoCo with injected friction and imperfect sensors.

    Parameters
    ----------
    config : names of joints, feet and IMU of the robot
    urdf_xml : text of its URDF
    scenario : gait, friction, pushes and ground
    noise : errors of the sensors
    seed : of the sensor noise; the same seed gives a bit-identical run
    start_ns : stamp of the first sample [ns]
    gains : of the joint controller

    Attributes
    ----------
    joint_names : (n,) ``Config.robot.joints``, or all movable joints
    leg_joint_names : (k, 6) from hip yaw to ankle roll, legs in the order of the feet
    substeps : integration steps per control period
    start_ns : stamp of the first sample [ns]; may be set until the first step

    Raises
    ------
    SimulationError
        When the robot cannot be built or cannot walk with the built-in gait.
    """

    def __init__(
        self,
        config: Config,
        urdf_xml: str,
        scenario: Scenario,
        noise: NoiseLevel,
        seed: int = 0,
        start_ns: int = 0,
        gains: ControllerGains = _GAINS,
    ) -> None:
        self._biped = Biped(config, urdf_xml)
        self._scenario = scenario
        self.start_ns = start_ns
        self._size = self._biped.dimensions(scenario.gait.leg_extension)
        plan = WalkPlan(scenario.gait, self._size, scenario.duration, scenario.ground)
        self._plan, self._references = plan, ReferenceGenerator(self._biped, plan, _PERIOD)
        self._references.check_reach(0.0, min(scenario.duration, _CHECKED_TIME))
        self._controller = JointController(self._biped, gains, _PERIOD)
        motors = Transmission.from_coupling(config.robot.coupling.coupling(), self._biped.joint_names)
        legs = [leg.joint_names for leg in self._biped.legs]
        self._friction = InjectedFriction(scenario.friction, self._biped.joint_names, legs, motors)
        self.substeps = self._needed_substeps()
        self._physics = Physics(self._biped, config, urdf_xml, _PERIOD / self.substeps)
        self._floors = FloorSchedule(scenario.ground, plan.footsteps)
        self.joint_names: tuple[str, ...] = config.robot.joints or self._biped.joint_names
        self.leg_joint_names = tuple(self._biped.legs[side].joint_names for side in np.argsort(self._biped.feet))
        self._columns: IntArray = np.array([self._biped.column(name) for name in self.joint_names])
        self._no_torque: FloatArray = np.zeros(len(self._biped.joint_names))
        self._sensors = SensorModel(noise, len(self.joint_names), len(config.feet), _PERIOD, seed)
        self._count = 0
        self._block = self._references.block(0, _BLOCK_PERIODS)
        self._settle()

    @property
    def time(self) -> float:
        """Time of the next sample since the start of the scenario [s]."""
        return self._count * _PERIOD

    @property
    def duration(self) -> float:
        """Length of the scenario [s]."""
        return self._scenario.duration

    def step(self, feedforward: FloatArray | None = None) -> SimulationSample:
        """Advance one control period of 1 ms and return the sensor readings at its beginning.

        Parameters
        ----------
        feedforward : (n,) torque that is added to the controller's in this period, such as friction compensation. The
            sum is cut to the effort limits, and the sample reports it as effort [N m]

        Raises
        ------
        SimulationError
            When the robot has fallen, the scenario is over, or ``feedforward`` is not one finite number per joint.
        """
        if self.time >= self.duration:
            raise SimulationError(f"the scenario {self._scenario.name!r} is over after {self.duration:g} s")
        row = self._count % _BLOCK_PERIODS
        if row == 0:
            self._block = self._references.block(self._count, _BLOCK_PERIODS)
        self._friction.advance(self.time)
        self._lay_ground()
        self._push()
        sample = self._control_period(self._block, row, self._all_joints(feedforward))
        self._count += 1
        return sample

    def walk_to(self, standing: int, footsteps: Sequence[FootPose]) -> None:
        """Walk to these footsteps instead of those of the scenario, and stand there.

        Parameters
        ----------
        standing : foot in the order of ``Config.feet`` that stands now
        footsteps : poses of the soles in the frame of the foot that stands; the other foot goes first, then in turn

        Raises
        ------
        SimulationError
            When the legs do not reach a footstep, or the other foot does not swing next; the walk goes on then.
        """
        side, step = self._biped.feet.index(standing), self._plan.next_step(self.time)
        coming = self._plan.footsteps[step : step + 1]
        if not coming or coming[0].foot == side:
            raise SimulationError(
                "these footsteps cannot begin now: the robot stands still, or the foot that should stand swings next"
            )
        ground = self._plan.footprint(side, step)
        plan = self._plan.revised(self.time, [ground.place(pose) for pose in footsteps])
        references = ReferenceGenerator(self._biped, plan, _PERIOD)
        references.check_reach(self.time, min(self.time + _CHECKED_TIME, self.duration))
        self._plan, self._references = plan, references
        self._block = references.block(self._count - self._count % _BLOCK_PERIODS, _BLOCK_PERIODS)
        self._floors = FloorSchedule(self._scenario.ground, plan.footsteps, step)

    def _needed_substeps(self) -> int:
        """Integration steps per control period, enough to keep a resting joint with steep friction from chattering."""
        _, free = self._biped.joint_inertia()
        needed = np.max(self._friction.slope() * _PERIOD / (_MAX_DECAY * free))
        return int(np.clip(np.ceil(needed), *_SUBSTEP_RANGE))

    def _settle(self) -> None:
        """Let the robot come to rest on its feet, in the pose where the plan begins, before time starts."""
        rest = replace(self._scenario.gait, walks=False, squat_depth=0.0)
        plan = WalkPlan(rest, self._size, _PERIOD, self._scenario.ground)
        block = ReferenceGenerator(self._biped, plan, _PERIOD).block(0, 1)
        self._physics.place(block.base[0], float(block.base_yaw[0]), block.position[0])
        for foot in self._biped.feet:
            self._physics.lay(foot, self._scenario.ground.incline(0.0, 0.0))
        for _ in range(_SETTLING_PERIODS):
            self._control_period(block, 0, self._all_joints(None))

    def _all_joints(self, feedforward: FloatArray | None) -> FloatArray:
        """Torques (m,) in pinocchio order; joints outside of ``joint_names`` get none."""
        if feedforward is None:
            return self._no_torque
        if np.shape(feedforward) != (len(self.joint_names),) or not np.isfinite(feedforward).all():
            raise SimulationError(
                f"feedforward must be {len(self.joint_names)} finite torques, one for each of "
                f"{list(self.joint_names)}, got {feedforward}"
            )
        torque = self._no_torque.copy()
        torque[self._columns] = feedforward
        return torque

    def _control_period(self, block: ReferenceBlock, row: int, feedforward: FloatArray) -> SimulationSample:
        physics, columns = self._physics, self._columns
        position, velocity = physics.position, physics.velocity
        pose, twist = physics.base_pose, physics.base_twist
        self._check_upright(pose, float(block.base[row, 2]))
        effort = self._controller.torque(block, row, position, velocity, pose[3:], twist[3:], feedforward)
        step = _PERIOD / self.substeps
        physics.set_stiction(self._friction.stiction(position, velocity, effort))
        friction = self._friction.torque(position, velocity, effort, step)
        physics.advance(effort - friction)
        friction = friction + physics.stiction
        exact, wrenches = physics.signals(position, velocity, effort, self._columns)
        truth = GroundTruth(
            self.start_ns + self._count * PERIOD_NS, friction[columns], pose[:3], physics.base_rotation, twist[:3],
            twist[3:], wrenches, wrenches[:, 2] > 0.0, physics.external_torque[columns], physics.com_in_world,
        )  # fmt: skip
        sample = self._sample(self._sensors.measure(exact), truth, block, row)
        for _ in range(self.substeps - 1):
            physics.advance(effort - self._friction.torque(physics.position, physics.velocity, effort, step))
        return sample

    def _sample(self, measured: FloatArray, truth: GroundTruth, block: ReferenceBlock, row: int) -> SimulationSample:
        columns = self._columns
        joints, imu, wrenches, delivered = self._sensors.samples(self._count, truth.stamp_ns, measured)
        if joints.stamp_ns != truth.stamp_ns:
            truth = replace(truth, stamp_ns=joints.stamp_ns)
        reference = Reference(block.position[row, columns], block.velocity[row, columns], block.com[row])
        return SimulationSample(joints, imu, wrenches, truth, reference, delivered)

    def _lay_ground(self) -> None:
        now = self.time
        if now >= self._floors.next_change:
            for side, plane in self._floors.due(now):
                self._physics.lay(self._biped.feet[side], plane)

    def _push(self) -> None:
        now = self.time
        for push in self._scenario.pushes:
            if push.start <= now < push.start + push.duration:
                self._physics.push(push.target, push.force_at(now))
            elif 0.0 <= now - push.start - push.duration < 2.0 * _PERIOD:
                self._physics.push(push.target, np.zeros(3))

    def _check_upright(self, pose: FloatArray, planned_height: float) -> None:
        _, _, height, _, x, y, _ = pose.tolist()
        lean = 2.0 * (x * x + y * y)  # 1 - cos(tilt)
        sunk = planned_height - height
        if not (sunk < _FALLEN_DEPTH * self._size.base_height and lean < _FALLEN_LEAN):
            raise SimulationError(
                f"the robot fell at t = {self.time:.3f} s in the scenario {self._scenario.name!r} "
                f"(base height {height:.2f} m, planned {planned_height:.2f} m): "
                "choose an easier gait, less friction, smaller pushes or stiffer gains"
            )


_ROLLOUT_STEP = 1e-3
"""Longest step of the integration [s]: drives compute their torque at about that rate."""


@dataclass(frozen=True, slots=True)
class Drives:
    """Joints with drives that compute ``kp (q_des - q) - kd dq``, and the parameters of their simulation."""

    joints: tuple[str, ...]  # (n) names in the URDF; all other joints are locked at zero
    kp: FloatArray  # (N, n) gains at every sample [N m/rad]
    kd: FloatArray  # (N, n) [N m s/rad]
    frictionloss: Callable[[FloatArray], FloatArray]  # positions (n) to dry friction (n) [rad, N m]
    damping: FloatArray  # (n) of MuJoCo [N m s/rad]
    armature: FloatArray  # (n) of MuJoCo [kg m^2]
    offset: FloatArray  # (n) constant part of the torque that the drive computes and that does not act [N m]
    delay: FloatArray  # (n) by which torques, or commands, act late [s]
    late_command: bool = False  # the command is late, not the feedback
    held: bool = True  # commands are held from sample to sample; False: they change in between, linearly


def rollout(urdf_xml: str, drives: Drives, time: FloatArray, command: FloatArray, start: FloatArray) -> FloatArray:
    """Positions (N, n) of the simulated joints [rad].

    Parameters
    ----------
    urdf_xml : text of the URDF, whose inertia is used
    drives : of the joints (n)
    time : (N,) strictly increasing [s]
    command : (N, n) positions [rad]
    start : (n) positions at the first sample, at rest [rad]

    Raises
    ------
    SimulationError
        When MuJoCo cannot simulate the URDF, or the joints run away.
    """
    model, places = _rollout_model(urdf_xml, drives)
    data = mujoco.MjData(model)
    data.qpos[places] = start
    mujoco.mj_forward(model, data)
    since = time - time[0]
    grid = np.arange(int(np.ceil(since[-1] / _ROLLOUT_STEP)) + 1) * _ROLLOUT_STEP
    sample = np.clip(np.searchsorted(since, grid, side="right") - 1, 0, None)
    kp, kd, offset, number = drives.kp[sample], drives.kd[sample], drives.offset, len(drives.joints)
    late = np.floor(drives.delay / _ROLLOUT_STEP).astype(np.intp)
    older_share = drives.delay / _ROLLOUT_STEP - late
    instant = np.arange(grid.size)[:, np.newaxis]
    newer, older = (np.maximum(instant - one, 0) * number + np.arange(number) for one in (late, late + 1))

    def delayed(signal: FloatArray, newer: IntArray, older: IntArray) -> FloatArray:
        """Values of a signal at these places of the flat array and the ones a step before."""
        return np.asarray((1.0 - older_share) * signal.take(newer) + older_share * signal.take(older))

    if drives.held:
        wanted = command[sample]
    else:
        wanted = np.column_stack([np.interp(grid, since, column) for column in command.T])
    if drives.late_command:
        wanted = delayed(wanted, newer, older)
    torque, position = np.zeros_like(wanted), np.zeros_like(wanted)
    angle, speed, friction, applied = data.qpos, data.qvel, model.dof_frictionloss, data.qfrc_applied
    for k in range(grid.size):
        position[k] = here = angle[places]
        torque[k] = kp[k] * (wanted[k] - here) - kd[k] * speed[places] - offset
        friction[places] = drives.frictionloss(here)
        applied[places] = torque[k] if drives.late_command else delayed(torque, newer[k], older[k])
        mujoco.mj_step(model, data)
    if not np.isfinite(position).all() or data.warning[mujoco.mjtWarning.mjWARN_BADQACC].number:
        raise SimulationError("the simulated joints run away: with these gains and delays, the drives are not stable")
    return np.column_stack([np.interp(since, grid, column) for column in position.T])


def _rollout_model(urdf_xml: str, drives: Drives) -> tuple[mujoco.MjModel, IntArray]:
    """The robot without contacts and limits, base and all other joints fixed, and places of the joints of the drives.

    The places are those among positions and velocities. Dry friction hardly creeps.
    """
    try:
        spec = mujoco.MjSpec.from_string(checked_urdf(urdf_xml))
        drop_meshes(spec)
        for joint in list(spec.joints):
            if joint.name not in drives.joints:
                spec.delete(joint)
        spec.option.timestep, spec.option.integrator = _ROLLOUT_STEP, mujoco.mjtIntegrator.mjINT_IMPLICITFAST
        spec.option.disableflags = mujoco.mjtDisableBit.mjDSBL_CONTACT | mujoco.mjtDisableBit.mjDSBL_LIMIT
        model = spec.compile()
        places = np.array([model.joint(name).dofadr[0] for name in drives.joints])
    except (ValueError, KeyError, mujoco.FatalError) as error:
        raise SimulationError(f"MuJoCo cannot simulate the URDF: {error}") from None
    model.dof_solref[places] = [float(value) for value in STICTION_REFERENCE.split()]
    model.dof_solimp[places] = [float(value) for value in STICTION_IMPEDANCE.split()]
    model.dof_damping[places] = drives.damping
    model.dof_armature[places] = drives.armature
    return model, places
