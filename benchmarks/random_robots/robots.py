"""A robot and its sensors, drawn at random from a seed: no number is chosen by hand.

- Body: one of the four robots of ``config/robots`` (legs alone), 25 to 130 kg, every link with another mass and centre
  of mass. The estimator's URDF has masses that are wrong by up to 15 % and centres of mass by up to 12 mm (standard
  deviations).
- Friction: one of :data:`KINDS` with other coefficients in every joint, 0.15 to 0.8 % of the torque that topples the
  robot; a ripple of up to 20 % with none, one or two numbers per turn.
- Sensors: joints at 500 to 1000 Hz, the IMU at 200 to 1000 Hz, wrenches at 100 to 1000 Hz; encoders of 13 to 20 bits
  with differentiated velocity, or a measured velocity; torques and wrenches up to 5 ms late, torque gains of up to 3 %,
  offsets in some torque sensors; an IMU that is tilted by up to 3 degrees; half of the robots' YAML files have the
  noise of the sensors.
- Simulators: even seeds walk in the built-in one. Odd seeds walk in MuJoCo with its own ``dof_frictionloss`` and
  ``dof_damping``, which share no code with the first; the controller holds its torque over the sample, some walks
  pause, and some gears are elastic with play and have their encoder on the motor's side.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from xml.etree import ElementTree

import numpy as np

from benchmarks.shared.estimates import changed_config
from benchmarks.shared.wrong_bodies import perturbed_urdf
from friction_estimator.config import Config, SensorNoise
from friction_estimator.io.robot import Robot, load_robot
from friction_estimator.simulation import Gait, NoiseLevel
from friction_estimator.simulation.biped import Biped

BUILTIN, MUJOCO = SIMULATORS = ("builtin", "mujoco")
KINDS = ("coulomb_viscous", "stribeck", "asymmetric", "load_dependent", "lugre")
"""Kinds of friction, each in both simulators."""
IN_MODEL = "six_slope_load"
"""Kind of friction that the default law of the estimator represents exactly, for the study of its states."""
PARTS = {
    "URDF": ("mass_error", "com_error", "armature_known"),
    "torques": ("effort_quantum", "effort_gain_std", "effort_offset", "effort_delay"),
    "wrenches": ("wrench_delay", "force_bias", "force_gain_std"),
    "IMU": ("tilt", "specific_force_bias", "angular_velocity_bias"),
    "stamps": ("jitter",),
}
"""What the estimator is given with errors, and their fields of :class:`RandomRobot`."""
_BASES = ("suralp", "humanoid", "talos_legs", "g1")
_MASS = (25.0, 130.0)  # [kg]
_RATES = ((1000, 1000, 1000), (1000, 400, 100), (1000, 1000, 200), (500, 500, 250), (500, 200, 100))
_TEETH = (20, 200)  # smallest and largest number of ripples in a turn
_JOINTS = 12
LINK_MASS_STD, LINK_COM_STD = 0.1, 0.01
"""Links of the simulated robot against those of the base robot: relative, and in metres of a robot of full length."""
_GRAVITY = 9.81
_LENGTHS = {"origin": ("xyz",), "box": ("size",), "cylinder": ("radius", "length"), "sphere": ("radius",)}
_INERTIAS = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")


@dataclass(frozen=True, slots=True)
class RandomRobot:
    """Everything that was drawn. Joints are those of the legs, in the order of the URDF.

    Attributes
    ----------
    seed, simulator, attempt : a robot that falls is drawn again with an easier gait and less friction
    base, mass, length : robot of config/robots, total mass [kg], factor on all lengths
    kind : one of :data:`KINDS`
    dry, viscous : (n,) Coulomb torque [N m], viscous coefficient [N m s/rad]
    shape : (n,) by kind: breakaway over Coulomb torque, half the difference of the directions over their mean, or part
        of the motor torque that is lost
    stribeck_velocity, presliding : [rad/s], [rad]
    ripple, teeth : amplitude as a part of the torque, periods in a turn, none to two
    armature, armature_known : (n,) rotor inertia [kg m^2]; whether the estimator's YAML has it
    stiffness, play : of gears whose encoder is on the motor's side [N m/rad], [rad]; 0: rigid
    step_length, single_support, double_support, start, pause : gait [m], [s]; the pause is a stand in mid-walk
    rates, jitter : of joints, IMU and feet [Hz]; error of the stamps [s]
    bits, velocity_cutoff, velocity_std : encoder; low-pass of the differentiated velocity [Hz], or 0 and white noise
    effort_std, effort_quantum, effort_gain_std, effort_offset : of the torque sensors, offset (n,) [N m]
    effort_delay, wrench_delay : age of a reading at its stamp [s]
    tilt, specific_force_std, specific_force_bias, angular_velocity_std, angular_velocity_bias : of the IMU, in SI units
    force_std, force_bias, force_gain_std : of the feet; moments have a tenth of them
    datasheet : whether the estimator's YAML has the noise of the sensors
    mass_error, com_error : standard deviations of the errors of the estimator's URDF [1], [m]
    """

    seed: int
    simulator: str
    attempt: int
    base: str
    mass: float
    length: float
    kind: str
    dry: Sequence[float]
    viscous: Sequence[float]
    shape: Sequence[float]
    stribeck_velocity: float
    presliding: float
    ripple: float
    teeth: Sequence[int]
    armature: Sequence[float]
    armature_known: bool
    stiffness: float
    play: float
    step_length: float
    single_support: float
    double_support: float
    start: float
    pause: float
    rates: Sequence[int]
    jitter: float
    bits: int
    velocity_cutoff: float
    velocity_std: float
    effort_std: float
    effort_quantum: float
    effort_gain_std: float
    effort_offset: Sequence[float]
    effort_delay: float
    wrench_delay: float
    tilt: float
    specific_force_std: float
    specific_force_bias: float
    angular_velocity_std: float
    angular_velocity_bias: float
    force_std: float
    force_bias: float
    force_gain_std: float
    datasheet: bool
    mass_error: float
    com_error: float

    def corrected(self, *parts: str) -> RandomRobot:
        """The same robot without the errors of these :data:`PARTS`: white noise, rounding and the rates remain."""
        right = {"effort_offset": (0.0,) * len(self.dry), "armature_known": True}
        names = [name for part in parts for name in PARTS[part]]
        changes: dict[str, Any] = {name: right.get(name, 0.0) for name in names}
        return replace(self, **changes)

    @property
    def gait(self) -> Gait:
        """Motion of the legs."""
        return Gait(
            start=self.start,
            step_length=self.step_length,
            single_support=self.single_support,
            double_support=self.double_support,
            clearance=0.05 * self.length,
        )

    def nominal_urdf(self) -> str:
        """URDF of the base robot in another size."""
        xml = load_robot(self.base).urdf_xml
        mass = Biped(load_robot(self.base, self._legs_alone()).config, xml).mass
        return resized_urdf(xml, self.mass / mass, self.length)

    def true_urdf(self) -> str:
        """URDF of the simulated robot: every link has another mass and another centre of mass."""
        return perturbed_urdf(self.nominal_urdf(), LINK_MASS_STD, LINK_COM_STD * self.length, self.seed)

    def estimator_urdf(self, true_urdf: str) -> str:
        """URDF that the estimator gets."""
        return perturbed_urdf(true_urdf, self.mass_error, self.com_error, self.seed + 1)

    def true_config(self) -> Config:
        """Configuration of the simulated robot."""
        return load_robot(self.base, {**self._legs_alone(), "robot.armature": list(self.armature)}).config

    def estimator_config(self, changes: dict[str, Any]) -> Config:
        """Configuration that the estimator gets: the robot's YAML, with these parameters changed."""
        parameters = {**self._legs_alone(), **changes}
        if self.armature_known:
            parameters["robot.armature"] = list(self.armature)
        if self.datasheet:
            errors = SensorNoise(
                position_std=0.0,
                velocity_std=self.velocity_std,
                effort_std=self.effort_std,
                specific_force_std=self.specific_force_std,
                angular_velocity_std=self.angular_velocity_std,
                force_std=self.force_std,
                moment_std=0.1 * self.force_std,
            )
            level = NoiseLevel("", errors, encoder_step(self), self.velocity_cutoff).datasheet(1.0 / self.rates[0])
            for name in ("position", "velocity", "effort", "specific_force", "angular_velocity", "force", "moment"):
                parameters.setdefault(f"sensors.{name}_std", getattr(level, f"{name}_std"))
            parameters.setdefault("sensors.velocity_cutoff", level.velocity_cutoff)
        return changed_config(self.base, parameters)

    def _legs_alone(self) -> dict[str, Any]:
        robot = load_robot(self.base)
        return {"robot.joints": list(leg_joints(robot)), "robot.armature": []}


def encoder_step(robot: RandomRobot) -> float:
    """Resolution of the joint position [rad]."""
    return 2.0 * math.pi / 2**robot.bits


def leg_joints(robot: Robot) -> tuple[str, ...]:
    """Joints of both legs, in the order of the URDF."""
    biped = Biped(robot.config, robot.urdf_xml)
    of_legs = {name for leg in biped.legs for name in leg.joint_names}
    return tuple(name for name in biped.joint_names if name in of_legs)


def draw(seed: int, simulator: str, attempt: int = 0) -> RandomRobot:
    """Draw a robot; a later attempt differs from the first by an easier gait and less friction."""
    rng = np.random.default_rng([seed, SIMULATORS.index(simulator)])

    def sometimes(probability: float, value: float) -> float:
        return value if rng.random() < probability else 0.0

    def log_uniform(low: float, high: float, size: int | None = None) -> Any:
        values = np.exp(rng.uniform(math.log(low), math.log(high), size))
        return float(values) if size is None else values

    base = str(rng.choice(_BASES))
    mass = log_uniform(*_MASS)
    length = {"suralp": 1.0, "humanoid": 1.0, "talos_legs": 1.0, "g1": 1.25}[base]
    length *= (mass / 75.0) ** (1.0 / 3.0) * rng.uniform(0.85, 1.1)
    unit = mass * _GRAVITY * 0.7 * length  # toppling torque [N m]
    size = np.tile((1.0, 1.0, 1.0, 1.0, 0.6, 0.5), 2) * log_uniform(0.6, 1.6, _JOINTS)
    dry = unit * size * log_uniform(0.0015, 0.008) * 0.6**attempt
    kind = KINDS[seed // 2 % len(KINDS)]  # equally often in every simulator
    shape = {
        "stribeck": rng.uniform(1.2, 2.0, _JOINTS),
        "asymmetric": rng.uniform(0.05, 0.4, _JOINTS) * rng.choice((-1.0, 1.0), _JOINTS),
        "load_dependent": rng.uniform(0.01, 0.06, _JOINTS),
        "lugre": rng.uniform(1.0, 1.5, _JOINTS),
    }.get(kind, np.zeros(_JOINTS))
    viscous = dry * log_uniform(0.1, 1.0, _JOINTS)
    stribeck_velocity, presliding = log_uniform(0.02, 0.3), log_uniform(2e-4, 3e-3)
    ripples = int(rng.choice((0, 1, 2), p=(0.3, 0.35, 0.35)))
    ripple, teeth = rng.uniform(0.02, 0.2) if ripples else 0.0, rng.integers(*_TEETH, ripples).tolist()
    elastic = simulator == MUJOCO and rng.random() < 0.2
    armature = unit * (log_uniform(3e-4, 1e-3) if elastic else log_uniform(1e-5, 3e-4)) * size
    armature_known = bool(rng.random() < 0.7) or elastic
    stiffness, play = 20.0 * unit * log_uniform(0.7, 4.0), sometimes(0.6, log_uniform(2e-4, 1.5e-3))
    step_length, single_support, double_support = rng.uniform((0.06, 0.5, 0.4), (0.14, 0.7, 0.9)).tolist()
    start, pause = 0.5 + sometimes(0.25, rng.uniform(2.0, 4.0)), sometimes(0.3, rng.uniform(2.0, 4.0))
    rates = _RATES[rng.integers(len(_RATES))]
    differentiated = rng.random() < 0.7
    period = 1.0 / rates[0]
    effort_delay = float(rng.choice((0.0, period, 5e-3 * rng.random() ** 2)))
    offset = rng.normal(0.0, 2e-3 * unit, _JOINTS) * (rng.random(_JOINTS) < 0.3) * (rng.random() < 0.3)
    robot = RandomRobot(
        seed=seed,
        simulator=simulator,
        attempt=attempt,
        base=base,
        mass=mass,
        length=length,
        kind=kind,
        dry=dry.tolist(),
        viscous=viscous.tolist(),
        shape=shape.tolist(),
        stribeck_velocity=stribeck_velocity,
        presliding=presliding,
        ripple=ripple,
        teeth=teeth if simulator == MUJOCO else teeth[:1],
        armature=armature.tolist(),
        armature_known=armature_known,
        stiffness=stiffness if elastic else 0.0,
        play=play if elastic else 0.0,
        step_length=step_length * length,
        single_support=single_support,
        double_support=double_support,
        start=start,
        pause=pause if simulator == MUJOCO else 0.0,
        rates=rates,
        jitter=sometimes(0.5, rng.uniform(0.0, 3e-4)),
        bits=int(rng.integers(13, 21)),
        velocity_cutoff=rng.uniform(30.0, 100.0) if differentiated else 0.0,
        velocity_std=0.0 if differentiated else log_uniform(1e-3, 1e-2),
        effort_std=unit * log_uniform(1e-5, 3e-4),
        effort_quantum=sometimes(0.3, unit * log_uniform(1e-5, 3e-4)),
        effort_gain_std=rng.uniform(0.0, 0.03),
        effort_offset=offset.tolist(),
        effort_delay=effort_delay,
        wrench_delay=sometimes(0.6, rng.uniform(0.0, 5e-3)),
        tilt=math.radians(sometimes(0.7, rng.uniform(0.0, 3.0))),
        specific_force_std=log_uniform(1e-3, 5e-2),
        specific_force_bias=rng.uniform(0.0, 0.05),
        angular_velocity_std=log_uniform(1e-3, 5e-3),
        angular_velocity_bias=rng.uniform(0.0, 3e-3),
        force_std=log_uniform(0.3, 3.0),
        force_bias=rng.uniform(0.0, 5.0),
        force_gain_std=rng.uniform(0.0, 0.02),
        datasheet=bool(rng.random() < 0.5),
        mass_error=sometimes(0.8, rng.uniform(0.0, 0.15)),
        com_error=sometimes(0.8, rng.uniform(0.0, 0.012)),
    )
    if attempt == 0:
        return robot
    return replace(robot, step_length=0.08 * length, single_support=0.6, double_support=0.9)


def resized_urdf(urdf_xml: str, mass_factor: float, length_factor: float) -> str:
    """Copy of a URDF with all masses and lengths multiplied; inertias and effort limits follow."""
    root = ElementTree.fromstring(urdf_xml)

    def scale(element: ElementTree.Element, attribute: str, factor: float) -> None:
        if attribute in element.attrib:
            values = (factor * float(value) for value in element.get(attribute, "").split())
            element.set(attribute, " ".join(map(repr, values)))

    for element in root.iter():
        for attribute in _LENGTHS.get(element.tag, ()):
            scale(element, attribute, length_factor)
        if element.tag == "mass":
            scale(element, "value", mass_factor)
        if element.tag == "limit":
            scale(element, "effort", max(2.0, 2.0 * mass_factor * length_factor))
        for attribute in _INERTIAS if element.tag == "inertia" else ():
            scale(element, attribute, mass_factor * length_factor**2)
    return ElementTree.tostring(root, encoding="unicode")
