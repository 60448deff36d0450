"""External torque by MOB-Net, ``r - J^T F - tau_u``, in place of that of the friction stage or fused with it."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field

import numpy as np

from friction_estimator.config import Config
from friction_estimator.estimation.estimator import Estimator
from friction_estimator.estimation.pipeline import has_effort
from friction_estimator.learning.fusion import Fusion
from friction_estimator.learning.guard import Guard
from friction_estimator.learning.network import Model
from friction_estimator.learning.signals import SignalStage, ground_wrenches
from friction_estimator.types import Dynamics, FloatArray, FrictionEstimate, SensorFrame


@dataclass(frozen=True, slots=True)
class WholeBodyTorque:
    """External torque of one sample: force and moment on the base, in base axes about its origin, then the joints.

    Attributes
    ----------
    residual : (nv,) of the momentum observer, without the wrenches of the ground on the feet [N, N m]; NaN: unknown
    uncertainty, sigma : (nv,) uncertainty torque of the networks and its standard deviation [N, N m]
    external : (nv,) external torque: residual without uncertainty torque [N, N m]; NaN also where the networks have not
        learned from such motions (:class:`~friction_estimator.learning.guard.Guard`)
    dynamics : of the sample
    """

    residual: FloatArray
    uncertainty: FloatArray
    sigma: FloatArray
    external: FloatArray
    dynamics: Dynamics


@dataclass(slots=True)
class MobNetEstimate(FrictionEstimate):
    """An estimate whose external torque is that of MOB-Net.

    Attributes
    ----------
    whole_body : the external torque of all rows
    """

    whole_body: WholeBodyTorque = field(kw_only=True)


class MobNetEstimator(Estimator):
    """An :class:`Estimator` whose external torque, and its sigma, are those of MOB-Net (:class:`MobNetEstimate`).

    They are those of the friction stage in rows without a foot sensor, before the residual has run for some time
    constants, and where the networks have not learned from such a sample (:class:`~friction_estimator.learning.guard.\
Guard`); of the last ``health`` gets an event.

    Parameters
    ----------
    config, urdf_xml : as of :class:`Estimator`
    model : of this robot (:func:`~friction_estimator.learning.network.load_model`)
    fused : True: the external torque is that of MOB-Net and friction stage together
        (:class:`~friction_estimator.learning.fusion.Fusion`)
    """

    def __init__(self, config: Config, urdf_xml: str, model: Model, fused: bool = False) -> None:
        super().__init__(config, urdf_xml)
        robot = self._pipeline.robot
        self._base = robot.base_dofs
        self._stage = SignalStage(robot, config.momentum.inputs_are_held)
        self._network, self._guard = model.estimator(), Guard(model, bool(self._base), self._health)
        self._fusion = Fusion(len(robot.joint_names)) if fused else None

    def _use(self, frame: SensorFrame) -> list[FrictionEstimate]:
        estimates = super()._use(frame)
        sensed, guard = self._pipeline.sensed, self._guard
        if sensed is None or not estimates or not has_effort(frame):
            self._stage.reset()
            self._network.reset()
            guard.reset()
            return estimates
        if frame.dt == 0.0:
            self._network.reset()
            guard.reset()
        ground = ground_wrenches(frame.wrenches, sensed.phase.contact)
        signals = self._stage.step(frame, sensed.attitude, sensed.dynamics, ground)
        torque, sigma = self._network.step(signals.inputs)
        if guard.knows(signals.inputs, frame.stamp_ns, frame.dt):
            residual = signals.residual - signals.external
            external = guard.external_torque(residual, torque, sigma, frame.stamp_ns, frame.dt)
            whole_body = WholeBodyTorque(residual, torque, sigma, external, sensed.dynamics)
            estimates[-1] = self._with_external_torque(estimates[-1], whole_body, frame, ground)
        return estimates

    def _with_external_torque(
        self, estimate: FrictionEstimate, whole_body: WholeBodyTorque, frame: SensorFrame, ground: FloatArray
    ) -> MobNetEstimate:
        """Put the external torque of MOB-Net, where it is known, in place of the friction stage's, or fuse both."""
        torque, sigma = whole_body.external[self._base :], whole_body.sigma[self._base :]
        observed = estimate.external_torque, estimate.external_torque_sigma
        if self._fusion is not None:
            J, unexpected = whole_body.dynamics.foot_jacobian, frame.wrenches - ground
            torque, sigma = self._fusion.step(observed, (torque, sigma), J, unexpected, frame.dt)
        else:
            known = np.isfinite(torque)
            torque, sigma = np.where(known, torque, observed[0]), np.where(known, sigma, observed[1])
        values = {item.name: getattr(estimate, item.name) for item in dataclasses.fields(estimate)}
        values |= {"external_torque": torque, "external_torque_sigma": sigma}
        return MobNetEstimate(**values, whole_body=whole_body)
