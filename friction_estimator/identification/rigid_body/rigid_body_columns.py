"""Columns of the observation matrix that hold the rigid body: base parameters, drive inertia, known bodies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from friction_estimator.config.robot import Coupling
from friction_estimator.identification.recording.motion import Motion
from friction_estimator.identification.rigid_body.base_parameters import BaseParameters, base_parameters
from friction_estimator.identification.rigid_body.fixed_base_model import FixedBaseModel
from friction_estimator.types import FloatArray


def drive_inertia_columns(
    joint_names: Sequence[str], acceleration: FloatArray, coupling: Coupling | None = None
) -> tuple[tuple[str, ...], FloatArray]:
    """Names and columns (N, n, m) of the inertia of the drives, Ia of Hamon et al. 2010, eq. 9, seen at the joint.

    Parameters
    ----------
    acceleration : (N, n) [rad/s^2]
    coupling : drives turn with the motors' accelerations, and act on the joints through the coupling
    """
    directions = np.eye(len(joint_names))
    names = list(joint_names)
    if coupling is not None:
        places = [list(joint_names).index(name) for name in coupling.joint_names]
        directions[np.ix_(places, places)] = np.linalg.inv(coupling.matrix)
        for place, motor in zip(places, coupling.motor_names, strict=True):
            names[place] = motor
    columns = np.einsum("mi,mj,ti->tjm", directions, directions, acceleration)
    return tuple(f"Ia {name}" for name in names), np.asarray(columns)


_RANDOM_SAMPLES = 200
_DRIVE_UNIT = "kg m^2"


@dataclass(frozen=True, slots=True)
class RigidBodyOptions:
    """What of the rigid body is unknown.

    Attributes
    ----------
    known_inertia : the URDF's inertial parameters are trusted; nothing of the links is estimated
    drive_inertia : the inertia of every drive is estimated
    payload_scale : the mass of the payloads is estimated too, as a multiple of the given mass (M_ae / M_aw of Hamon et
        al. 2010, eq. 35); otherwise they are known
    """

    known_inertia: bool = False
    drive_inertia: bool = True
    payload_scale: bool = False


class RigidBody:
    """Torque of everything that is not friction, ``known + columns @ chi`` (Hamon et al. 2010, eqs. 10, 34, 35).

    Parameters
    ----------
    model : of the recorded joints
    options : what is unknown
    coupling : of the drives, None where every joint has its own

    Attributes
    ----------
    base : which standard parameters (links, then drives) can be identified, and how
    names, units : (b) of the columns
    link_reference : (10 l,) standard parameters of the unknown links in the URDF
    reference : (b,) values by the URDF, NaN where drives are in it: a URDF does not know their inertia
    """

    def __init__(self, model: FixedBaseModel, options: RigidBodyOptions, coupling: Coupling | None = None) -> None:
        self._model = model
        self._options = options
        self._coupling = coupling
        self.base = self._structure()
        self.names: tuple[str, ...] = self.base.names
        units = self._standard_units()
        self.units: tuple[str, ...] = tuple(units[k] for k in self.base.kept)
        self.link_reference: FloatArray = np.zeros(0) if options.known_inertia else model.urdf_parameters
        standard = np.append(self.link_reference, np.full(len(units) - self.link_reference.size, np.nan))
        self.reference: FloatArray = np.array([_combine(row, standard) for row in self.base.grouping])
        if options.payload_scale:
            self.names += ("payload scale",)
            self.units += ("",)
            self.reference = np.append(self.reference, 1.0)

    def columns(self, motion: Motion) -> tuple[FloatArray, FloatArray]:
        """Columns (N, n, b) and known torque (N, n) [N m] of a motion."""
        q, v, a = motion.position, motion.velocity, motion.acceleration
        regressor = self._model.regressor(q, v, a)
        known = regressor @ self._model.urdf_parameters if self._options.known_inertia else np.zeros_like(q)
        payload = np.zeros_like(q)
        if motion.payload is not None:
            payload = regressor @ self._model.payload_parameters(motion.payload)
        standard = self._standard(regressor, a)
        columns = standard[:, :, self.base.kept]
        if self._options.payload_scale:
            return np.concatenate((columns, payload[:, :, None]), axis=2), known
        return columns, known + payload

    def standard_inertia(self, values: FloatArray) -> dict[str, float]:
        """Standard parameters by name that give the same torque as these values (b,) of the columns.

        The payload scale is not among them: it belongs to the payloads of the recordings.
        """
        known = self._model.urdf_parameters if self._options.known_inertia else np.zeros(0)
        inertia = {name: float(value) for name, value in zip(self._model.standard_names, known, strict=False) if value}
        names = self._standard_names()
        for column, value in zip(self.base.kept.tolist(), values.tolist(), strict=False):
            if value != 0.0:
                inertia[names[column]] = value
        return inertia

    def _structure(self) -> BaseParameters:
        """Base parameters of random motions: what this robot can show at all, whatever the data."""
        rng = np.random.default_rng(0)
        n = len(self._model.joint_names)
        q, v, a = rng.uniform(-np.pi, np.pi, (3, _RANDOM_SAMPLES, n))
        standard = self._standard(self._model.regressor(q, v, a), a)
        names = self._standard_names()
        return base_parameters(names, standard.reshape(-1, len(names)), behind=self._model.behind)

    def _standard_names(self) -> tuple[str, ...]:
        """Links, unless they are known, then drives."""
        links = () if self._options.known_inertia else self._model.standard_names
        if not self._options.drive_inertia:
            return links
        at_rest = np.zeros((1, len(self._model.joint_names)))
        return links + drive_inertia_columns(self._model.joint_names, at_rest, self._coupling)[0]

    def _standard(self, regressor: FloatArray, acceleration: FloatArray) -> FloatArray:
        links = regressor[:, :, :0] if self._options.known_inertia else regressor
        if not self._options.drive_inertia:
            return links
        drives = drive_inertia_columns(self._model.joint_names, acceleration, self._coupling)[1]
        return np.concatenate((links, drives), axis=2)

    def _standard_units(self) -> tuple[str, ...]:
        links = () if self._options.known_inertia else self._model.standard_units
        return links + (_DRIVE_UNIT,) * len(self._model.joint_names) * self._options.drive_inertia


def _combine(row: FloatArray, parameters: FloatArray) -> float:
    """A base parameter from standard ones; NaN only where it holds one that is not known."""
    used = row != 0.0
    return float(row[used] @ parameters[used])
