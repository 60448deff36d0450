"""Friction of the second simulator: MuJoCo's own ``dof_frictionloss`` and ``dof_damping``, and a bristle.

Nothing here is shared with friction_estimator/simulation/friction.py. Dry friction is set-valued: MuJoCo's constraint
solver finds the torque within its limit that keeps a joint at rest.
"""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np

from benchmarks.random_robots.robots import RandomRobot
from friction_estimator.types import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class FrictionForm:
    """Friction in one integration step: set-valued dry friction, damping, and a torque that is known beforehand.

    Attributes
    ----------
    dry : (n,) limit of the dry friction [N m]
    damping : (n,) [N m s/rad]
    known : (n,) [N m]
    """

    dry: FloatArray
    damping: FloatArray
    known: FloatArray


class MujocoFriction:
    """Friction of one random robot over the integration steps.

    Attributes
    ----------
    dry, viscous : (n,) Coulomb torque [N m] and viscous coefficient [N m s/rad] now
    """

    def __init__(self, robot: RandomRobot) -> None:
        self._robot = robot
        self.dry, self.viscous, self._shape = (np.array(v) for v in (robot.dry, robot.viscous, robot.shape))
        self._bristle: FloatArray = np.zeros(self.dry.size)
        rng = np.random.default_rng(robot.seed)
        self._phase = rng.uniform(0.0, 2.0 * np.pi, (2, self.dry.size))

    def form(self, position: FloatArray, velocity: FloatArray, load: FloatArray, dt: float) -> FrictionForm:
        """Friction at this state; the bristle deflects by the step that begins here.

        Parameters
        ----------
        position, velocity, load : of the joints or their motors (n,) [rad], [rad/s], [N m]
        dt : integration step [s]
        """
        robot, dry, damping, known = self._robot, self.dry, self.viscous, np.zeros(self.dry.size)
        if robot.kind in ("stribeck", "lugre"):
            dry = dry * (1.0 + (self._shape - 1.0) * np.exp(-((velocity / robot.stribeck_velocity) ** 2)))
        elif robot.kind == "asymmetric":  # a range of torques at rest that is not symmetric
            known = self._shape * dry
            damping = damping * (1.0 + self._shape * np.sign(velocity))
        elif robot.kind == "load_dependent":
            dry = dry + self._shape * np.abs(load)
        factor = self._ripple(position)
        if robot.kind != "lugre":
            return FrictionForm(factor * dry, factor * damping, factor * known)
        known = dry * self._bristle
        decay = np.exp(-np.abs(velocity) * dt / robot.presliding)
        self._bristle = np.sign(velocity) + (self._bristle - np.sign(velocity)) * decay
        return FrictionForm(np.zeros(dry.size), factor * damping, factor * known)

    def _ripple(self, position: FloatArray) -> FloatArray:
        waves = zip(self._robot.teeth, self._phase, strict=False)
        amplitude = self._robot.ripple / max(1, len(self._robot.teeth))
        return np.ones(position.size) + sum(amplitude * np.sin(n * position + phase) for n, phase in waves)


def set_friction(model: mujoco.MjModel, dofs: IntArray, form: FrictionForm) -> None:
    """Give MuJoCo the dry friction and the damping of these degrees of freedom."""
    model.dof_frictionloss[dofs] = form.dry
    model.dof_damping[dofs] = form.damping


def solved_dry_friction(model: mujoco.MjModel, data: mujoco.MjData, dofs: IntArray) -> FloatArray:
    """Dry friction that the solver found in the last step, along positive velocity (n,) [N m]."""
    rows = data.efc_type == mujoco.mjtConstraint.mjCNSTR_FRICTION_DOF
    torque = np.zeros(model.nv)
    torque[data.efc_id[rows]] = -data.efc_force[rows]
    return torque[dofs]


class ElasticGears:
    """Motors behind springs with play, integrated in steps with MuJoCo: friction and encoder are on the motor's side.

    Coulomb friction is implicit: within its limit, it stops the motor in one step.
    """

    def __init__(self, robot: RandomRobot, position: FloatArray) -> None:
        self.position, self.velocity = position.copy(), np.zeros(position.size)
        self._inertia, self._stiffness, self._play = np.array(robot.armature), robot.stiffness, robot.play
        self._damping = 0.1 * np.sqrt(self._stiffness * self._inertia)

    def step(
        self, torque: FloatArray, form: FrictionForm, position: FloatArray, velocity: FloatArray, dt: float
    ) -> tuple[FloatArray, FloatArray]:
        """Torques on the joints and friction of the motors (n,) in this step, from motor torques and joint state."""
        twist = self.position - position
        strain = twist - np.clip(twist, -self._play, self._play)
        spring = self._stiffness * strain + np.where(strain != 0.0, self._damping * (self.velocity - velocity), 0.0)
        free = self.velocity + dt / self._inertia * (torque - spring - form.known)
        stop = dt * form.dry / self._inertia
        after = (free - np.clip(free, -stop, stop)) / (1.0 + dt * form.damping / self._inertia)
        friction = form.known + np.clip(free, -stop, stop) * self._inertia / dt + form.damping * after
        self.velocity = after
        self.position = self.position + dt * after
        return spring, friction
