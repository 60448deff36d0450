"""External torque by MOB-Net in place of that of the friction stage: ``r - J^T F - tau_u`` with the network's sigma."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field

import numpy as np

from friction_estimator.config import Config
from friction_estimator.estimation.estimator import Estimator
from friction_estimator.estimation.pipeline import has_effort
from friction_estimator.learning.network import Model
from friction_estimator.learning.signals import SignalStage, ground_wrenches
from friction_estimator.types import BoolArray, Dynamics, FloatArray, FrictionEstimate, SensorFrame, record

MARGIN = 0.25
"""An input may be outside the range of the training data by this part of the range."""
_LEAST_MARGIN = 1e-3
"""Margin of inputs that were constant [rad, rad/s, N m, m/s^2]."""
_LARGEST_RATE_RATIO = 1.1
"""The networks count in samples: the rate of the joint states may differ from that of the training data by this."""
_AVERAGED = 100
"""Samples over which the rate is averaged."""


@dataclass(frozen=True, slots=True)
class WholeBodyTorque:
    """External torque of one sample: force and moment on the base, in base axes about its origin, then the joints.

    Attributes
    ----------
    residual : (nv,) of the momentum observer, without the wrenches of the ground on the feet [N, N m]; NaN: unknown
    uncertainty, sigma : (nv,) uncertainty torque of the networks and its standard deviation [N, N m]
    dynamics : of the sample
    """

    residual: FloatArray
    uncertainty: FloatArray
    sigma: FloatArray
    dynamics: Dynamics

    @property
    def external(self) -> FloatArray:
        """External torque (nv,) [N, N m]."""
        return self.residual - self.uncertainty


@record(frozen=True, slots=True)
class MobNetEstimate(FrictionEstimate):
    """An estimate whose external torque is that of MOB-Net.

    Attributes
    ----------
    whole_body : the external torque of all rows
    """

    whole_body: WholeBodyTorque = field(kw_only=True)


class MobNetEstimator(Estimator):
    """An :class:`Estimator` whose external torque, and its sigma, are those of MOB-Net (:class:`MobNetEstimate`).

    Where an input is outside the range of the training data, where the rate is another one, and in rows without a foot
    sensor or before the residual has run for some time constants, they are those of the friction stage. Of the first
    two, ``health`` gets an event.

    Parameters
    ----------
    config, urdf_xml : as of :class:`Estimator`
    model : of this robot (:func:`~friction_estimator.learning.network.load_model`)
    """

    def __init__(self, config: Config, urdf_xml: str, model: Model) -> None:
        super().__init__(config, urdf_xml)
        robot = self._pipeline.robot
        self._base = robot.base_dofs
        self._stage = SignalStage(robot, config.momentum.inputs_are_held)
        self._network, self._period = model.estimator(), model.period
        self._mean_step = self._period
        low, high = model.input_range
        margin = np.maximum(MARGIN * (high - low), _LEAST_MARGIN)
        self._low, self._high = low - margin, high + margin
        self._input_names = _input_names(robot.joint_names, bool(self._base))

    def _use(self, frame: SensorFrame) -> list[FrictionEstimate]:
        estimates = super()._use(frame)
        sensed = self._pipeline.sensed
        if sensed is None or not estimates or not has_effort(frame):
            self._stage.reset()
            self._network.reset()
            return estimates
        if frame.dt == 0.0:
            self._network.reset()
        wrenches = ground_wrenches(frame.wrenches, sensed.phase.contact)
        signals = self._stage.step(frame, sensed.attitude, sensed.dynamics, wrenches)
        torque, sigma = self._network.step(signals.inputs)
        if self._is_known(frame, (signals.inputs < self._low) | (signals.inputs > self._high), signals.inputs):
            whole_body = WholeBodyTorque(signals.residual - signals.external, torque, sigma, sensed.dynamics)
            estimates[-1] = self._with_external_torque(estimates[-1], whole_body)
        return estimates

    def _with_external_torque(self, estimate: FrictionEstimate, whole_body: WholeBodyTorque) -> MobNetEstimate:
        """Put the external torque of MOB-Net, where it is known, in place of that of the friction stage."""
        torque, sigma, joints = whole_body.external[self._base :], whole_body.sigma[self._base :], estimate.joints
        known = np.isfinite(torque)
        joints = dataclasses.replace(
            joints,
            external_torque=np.where(known, torque, joints.external_torque),
            external_torque_sigma=np.where(known, sigma, joints.external_torque_sigma),
        )
        return MobNetEstimate(
            estimate.stamp_ns,
            estimate.position,
            estimate.velocity,
            estimate.effort,
            estimate.phase,
            estimate.base,
            joints,
            estimate.compensation,
            whole_body=whole_body,
        )

    def _is_known(self, frame: SensorFrame, outside: BoolArray, inputs: FloatArray) -> bool:
        """Whether the networks have learned from samples like this one."""
        if outside.any():
            worst = int(np.flatnonzero(outside)[0])
            self._health.add_lasting_event(
                "mob_net_input",
                frame.stamp_ns,
                f"'{self._input_names[worst]}' = {inputs[worst]:.3g} is outside {self._low[worst]:.3g} to "
                f"{self._high[worst]:.3g}, for which MOB-Net was trained: the external torque is that of the observer; "
                "train with such motions",
            )
            return False
        self._mean_step += (frame.dt - self._mean_step) / _AVERAGED if frame.dt > 0.0 else 0.0
        if not 1.0 / _LARGEST_RATE_RATIO < self._mean_step / self._period < _LARGEST_RATE_RATIO:
            self._health.add_lasting_event(
                "mob_net_rate",
                frame.stamp_ns,
                f"joint states come every {self._mean_step:.3g} s, MOB-Net was trained with {self._period:.3g} s: "
                "the external torque is that of the observer; train with recordings of this rate",
            )
            return False
        return True


def _input_names(joint_names: tuple[str, ...], floating: bool) -> list[str]:
    names = [f"{quantity} of {joint}" for quantity in ("position", "velocity", "torque") for joint in joint_names]
    columns = [f"rotation matrix of the base, row {row}, column {column}" for column in (1, 2) for row in (1, 2, 3)]
    rates = [f"{quantity} {axis} of the base" for quantity in ("angular velocity", "specific force") for axis in "xyz"]
    return names + (columns + rates if floating else [])
