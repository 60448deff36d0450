"""External torque by MOB-Net, ``r - J^T F - tau_u``, in place of that of the friction stage or fused with it."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

import numpy as np

from friction_estimator.base.contact_phase import ground_wrenches
from friction_estimator.config import Config
from friction_estimator.estimation.estimator import Estimator
from friction_estimator.estimation.health import Health
from friction_estimator.estimation.pipeline import has_effort
from friction_estimator.learning.network import Model
from friction_estimator.learning.signals import SignalStage
from friction_estimator.types import Dynamics, FloatArray, FrictionEstimate, SensorFrame

Torque = FloatArray | tuple[FloatArray, FloatArray]
"""Torque (n,) and its standard deviation (n,) [N m]."""
_FUSION_MEMORY = 10.0
"""Time of the means: some steps of a walk, and about as long as the observer needs to identify the friction [s]."""
_PRIOR_TIME = 0.05
"""The sigmas of the first sample count as much as this time [s]."""
_CONTRADICTION_SIGMAS = 1.96
"""Sigma holds both torques where they are further apart than this many standard deviations: one source is wrong."""
_RANGE_MARGIN = 0.25
"""An input may be outside the range of the training data by this part of the range."""
_MIN_MARGIN = 1e-3
"""Margin of inputs that were constant [rad, rad/s, N m, m/s^2]."""
_MAX_RATE_RATIO = 1.1
"""The networks count in samples: the rate of the joint states may differ from that of the training data by this."""
_RATE_SAMPLES = 100
"""Samples over which the rate is averaged."""
_ERROR_TIME = 5.0
"""Time over which errors are compared with sigma [s]."""
_MAX_SQUARED_RATIO = 9.0
"""Largest squared ratio that counts: a collision has larger ones for a short time."""
CHANGE_TIME = 0.05
"""Time over which a change of the external torque is in its sigma: the friction of a joint that sticks turns from one
direction to the other within it [s]."""
_MAX_MEAN_RATIO = 2.0
"""Of the squared ratios of a limb, which are one where sigma is right. The largest are 1.2 in minutes of walking, 1.7
with a push every 3 s, 2.4 with a quarter more mass, and 4 while standing after a training with walks only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeBodyTorque:
    """External torque of one sample: force and moment on the base, in base axes about its origin, then the joints."""

    # (nv,) of the momentum observer, without the wrenches of the ground on the feet [N, N m]; NaN: unknown
    residual: FloatArray
    uncertainty: FloatArray  # (nv,) uncertainty torque of the networks [N, N m]
    # (nv,) standard deviation of the external torque, and that torque, the residual without uncertainty torque
    # [N, N m]; NaN also where the networks have not learned from such motions (Guard)
    sigma: FloatArray
    external: FloatArray
    dynamics: Dynamics  # of the sample


@dataclass(slots=True, kw_only=True)
class MobNetEstimate(FrictionEstimate):
    """An estimate whose external torque is that of MOB-Net."""

    whole_body: WholeBodyTorque  # the external torque of all rows


class Guard:
    """Whether the networks of MOB-Net have learned from motions like the present one: inputs, rate and errors.

    A motion can have all inputs within the range of the training data and still be unknown: standing, another payload,
    friction of a cold robot. Then the external torque is larger than its sigma for seconds, and not for the tenths of a
    second of a collision:

        m_i = <min((external_i / sigma_i)^2, 9)>,  mean over 5 s

    A limb is not known while the mean of its m_i exceeds 2.

    Parameters
    ----------
    model : of the networks
    floating : True for a floating base
    health : gets an event where a sample is not known
    """

    def __init__(self, model: Model, floating: bool, health: Health) -> None:
        self._health = health
        low, high = model.input_range
        margin = np.maximum(_RANGE_MARGIN * (high - low), _MIN_MARGIN)
        self._low, self._high = low - margin, high + margin
        self._input_names = _input_names(model.identity.joint_names, floating)
        self._period = self._mean_step = model.period
        modules = [network.module for network in model.networks]
        self._limbs = [module.name for module in modules]
        self._outputs = [module.outputs for module in modules]
        self.reset()

    def reset(self) -> None:
        """Forget the errors so far."""
        rows = sum(rows.size for rows in self._outputs)
        self._squares, self._filtered = np.ones(rows), np.full(rows, np.nan)

    def is_known(self, inputs: FloatArray, stamp_ns: int, dt: float) -> bool:
        """Whether inputs (x,) and period [s] are within those of the training data; else ``health`` gets an event."""
        outside = (inputs < self._low) | (inputs > self._high)
        if outside.any():
            worst = int(np.flatnonzero(outside)[0])
            self._health.add_lasting_event(
                "mob_net_input",
                stamp_ns,
                f"'{self._input_names[worst]}' = {inputs[worst]:.3g} is outside {self._low[worst]:.3g} to "
                f"{self._high[worst]:.3g}, for which MOB-Net was trained: the external torque is that of the observer; "
                "train with such motions",
            )
            return False
        self._mean_step += (dt - self._mean_step) / _RATE_SAMPLES if dt > 0.0 else 0.0
        if not 1.0 / _MAX_RATE_RATIO < self._mean_step / self._period < _MAX_RATE_RATIO:
            self._health.add_lasting_event(
                "mob_net_rate",
                stamp_ns,
                f"joint states come every {self._mean_step:.3g} s, MOB-Net was trained with {self._period:.3g} s: "
                "the external torque is that of the observer; train with recordings of this rate",
            )
            return False
        return True

    def external_torque(
        self, residual: FloatArray, uncertainty: FloatArray, sigma: FloatArray, stamp_ns: int, dt: float
    ) -> FloatArray:
        """External torque (nv,) [N, N m]: residual minus uncertainty torque; NaN in limbs that do not agree with sigma.

        Parameters
        ----------
        residual : (nv,) of the momentum observer without the torque of the foot wrenches [N, N m]
        uncertainty, sigma : (nv,) output of the networks: uncertainty torque and its standard deviation [N, N m]
        stamp_ns, dt : stamp of the sample [ns]; time since the sample before [s]
        """
        external, part = residual - uncertainty, min(dt / _ERROR_TIME, 1.0)
        ratio = (external / sigma) ** 2
        self._squares += np.where(np.isnan(ratio), 0.0, part * (np.minimum(ratio, _MAX_SQUARED_RATIO) - self._squares))
        means = [float(self._squares[rows].mean()) for rows in self._outputs]
        for rows, mean in zip(self._outputs, means, strict=True):
            if mean > _MAX_MEAN_RATIO:
                external[rows] = np.nan
        if max(means) > _MAX_MEAN_RATIO:
            limb = self._limbs[int(np.argmax(means))]
            self._health.add_lasting_event(
                "mob_net_sigma",
                stamp_ns,
                f"the external torque of '{limb}' stays beyond the sigma of MOB-Net: it is not used "
                "there; train with such motions and loads, or let nothing hold the robot",
            )
        return external

    def sigma(self, external: FloatArray, sigma: FloatArray, dt: float) -> FloatArray:
        """Standard deviation (nv,) of an external torque: at least its latest change.

        A push drives a joint through motions that no training has shown, and the friction changes with it: how much of
        a fast change is friction, the networks cannot show.
        """
        filtered = np.where(np.isnan(self._filtered), external, self._filtered)
        self._filtered = np.where(
            np.isnan(external), filtered, external + math.exp(-dt / CHANGE_TIME) * (filtered - external)
        )
        return np.fmax(sigma, np.abs(external - self._filtered))


def _input_names(joint_names: tuple[str, ...], floating: bool) -> list[str]:
    names = [f"{quantity} of {joint}" for quantity in ("position", "velocity", "torque") for joint in joint_names]
    columns = [f"rotation matrix of the base, row {row}, column {column}" for column in (1, 2) for row in (1, 2, 3)]
    rates = [f"{quantity} {axis} of the base" for quantity in ("angular velocity", "specific force") for axis in "xyz"]
    return names + (columns + rates if floating else [])


class Fusion:
    """External torque of the observer and of MOB-Net in one: weights from what both show, sigma for any correlation.

    x = n - w (n - k)        w = <n (n - k)> / <(n - k)^2>,  means over the last seconds

    k is the torque of the observer, n that of MOB-Net. Both contain the external torque in full, so it is not in their
    difference: the w that makes x^2 smallest also makes the error of x smallest, however the two errors are correlated
    (the unit-gain minimum-variance combination), and neither variance has to be claimed. Whatever the correlation is,
    the variance of the weighted error is at most w s_k^2 + (1 - w) s_n^2. The disagreement w (1 - w) (n - k)^2 is
    added, as in the variance of a mixture, because either sigma may be too small.

    Parameters
    ----------
    joint_count : n
    """

    def __init__(self, joint_count: int) -> None:
        self._means, self._squares, self._times = np.zeros((3, joint_count))

    def step(self, observer: Torque, network: Torque, dt: float) -> FloatArray:
        """Fused torque and sigma (2, n) of one sample, of the source that is known where only one is.

        Parameters
        ----------
        observer, network : torques (n,) and standard deviations (n,); NaN while unknown
        dt : since the sample before [s]
        """
        fused = np.where(np.isfinite(network[0]), network, observer)
        rows = np.flatnonzero(np.isfinite(network[0] - observer[0] + observer[1] ** 2 + network[1] ** 2))
        (k, k_variance), (n, n_variance) = ((one[0][rows], one[1][rows] ** 2) for one in (observer, network))
        difference, begins = n - k, self._times[rows] == 0.0
        means = np.where(begins, n_variance, self._means[rows])
        squares = np.where(begins, n_variance + k_variance, self._squares[rows])
        times = np.minimum(np.where(begins, _PRIOR_TIME, self._times[rows]) + dt, _FUSION_MEMORY)
        means += dt / times * (n * difference - means)
        squares += dt / times * (difference**2 - squares)
        self._means[rows], self._squares[rows], self._times[rows] = means, squares, times
        w = np.clip(np.divide(means, squares, out=np.full(k.size, 0.5), where=squares > 0.0), 0.0, 1.0)
        variance = w * k_variance + (1.0 - w) * n_variance + w * (1.0 - w) * difference**2
        contradicts = difference**2 > _CONTRADICTION_SIGMAS**2 * (k_variance + n_variance)
        contradiction_variance = (np.maximum(w, 1.0 - w) * difference / _CONTRADICTION_SIGMAS) ** 2
        variance = np.where(contradicts, np.maximum(variance, contradiction_variance), variance)
        fused[:, rows] = n - w * difference, np.sqrt(variance)
        return fused


def base_wrench(torque: WholeBodyTorque) -> FloatArray | None:
    """Wrench (6,) that hits a floating base, in base axes about its origin [N, N m]; None while unknown.

    ``F_u = F_e - sum_l X_l F_l`` (eq. 24); the expected wrenches F_l are those of the ground on the feet, which the
    residual is already without.
    """
    if torque.residual.size == torque.dynamics.position.size:
        return None
    wrench = torque.external[:6]
    return wrench if np.isfinite(wrench).all() else None


def wrench_at_foot(wrench: FloatArray, dynamics: Dynamics, foot: int) -> FloatArray:
    """Wrench (6,) of :func:`base_wrench`, in and about the sole frame of a foot [N, N m].

    The wrench on the base is that on the limb: it is exact wherever the limb is hit, if nothing else is hit meanwhile.
    The joint torques of the limb alone would show it less well, because the leg is almost singular.
    """
    rotation, position = dynamics.foot_rotation_to_base[foot], dynamics.foot_position_in_base[foot]
    force, moment = wrench[:3], wrench[3:]
    return np.concatenate((rotation.T @ force, rotation.T @ (moment - np.cross(position, force))))


class MobNetEstimator(Estimator):
    """An :class:`Estimator` whose external torque, and its sigma, are those of MOB-Net (:class:`MobNetEstimate`).

    They are those of the friction stage in rows without a foot sensor, before the residual has run for some time
    constants, and where the networks have not learned from such a sample: then ``health`` gets an event
    (:class:`Guard`).

    Parameters
    ----------
    config, urdf_xml : as of :class:`Estimator`
    model : of this robot (:func:`~friction_estimator.learning.network.load_model`)
    fused : True: the external torque is that of MOB-Net and friction stage together (:class:`Fusion`)
    """

    def __init__(self, config: Config, urdf_xml: str, model: Model, fused: bool = False) -> None:
        super().__init__(config, urdf_xml)
        robot = self.pipeline.robot
        self._base = robot.base_dofs
        self._stage = SignalStage(robot, config.momentum.inputs_are_held)
        self._network, self._guard = model.estimator(), Guard(model, bool(self._base), self._health)
        self._fusion = Fusion(len(robot.joint_names)) if fused else None

    def process(self, frame: SensorFrame) -> list[FrictionEstimate]:
        """Estimates of a frame, as those of :class:`Estimator`, with the external torque of MOB-Net."""
        estimates = super().process(frame)
        sensed, guard = self.pipeline.sensed, self._guard
        if sensed is None or not estimates or not has_effort(frame):
            self._stage.reset()
            self._network.reset()
            guard.reset()
            return estimates
        if frame.dt == 0.0:
            self._network.reset()
            guard.reset()
        ground = np.empty_like(frame.wrenches)
        ground_wrenches(frame.wrenches, sensed.phase.contact, ground)
        signals = self._stage.step(frame, sensed.attitude, sensed.dynamics, ground)
        torque, sigma = self._network.step(signals.inputs)
        if guard.is_known(signals.inputs, frame.stamp_ns, frame.dt):
            residual = signals.residual - signals.external
            external = guard.external_torque(residual, torque, sigma, frame.stamp_ns, frame.dt)
            whole_body = WholeBodyTorque(
                residual=residual,
                uncertainty=torque,
                sigma=guard.sigma(external, sigma, frame.dt),
                external=external,
                dynamics=sensed.dynamics,
            )
            estimates[-1] = self._with_external_torque(estimates[-1], whole_body, sigma, frame.dt)
        return estimates

    def _with_external_torque(
        self, estimate: FrictionEstimate, whole_body: WholeBodyTorque, network_sigma: FloatArray, dt: float
    ) -> MobNetEstimate:
        """Put the external torque of MOB-Net, where it is known, in place of the friction stage's, or fuse both.

        The fused sigma holds the difference of the sources, and not the latest change of one of them.
        """
        torque, sigma = whole_body.external[self._base :], whole_body.sigma[self._base :]
        observed = estimate.external_torque, estimate.external_torque_sigma
        if self._fusion is not None:
            torque, sigma = self._fusion.step(observed, (torque, network_sigma[self._base :]), dt)
        else:
            known = np.isfinite(torque)
            torque, sigma = np.where(known, torque, observed[0]), np.where(known, sigma, observed[1])
        values = {item.name: getattr(estimate, item.name) for item in dataclasses.fields(estimate)}
        values |= {"external_torque": torque, "external_torque_sigma": sigma}
        return MobNetEstimate(**values, whole_body=whole_body)
