"""Friction of an estimate: one registered law a joint, whose load is the motor torque, and samples with a band.

The second half leaves samples out that are too slow for the sign of their velocity to mean anything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import block_diag
from scipy.ndimage import maximum_filter1d

from friction_estimator.identification.inverse_dynamics.estimation import (
    Estimate,
    drive_std,
    reference_speeds,
)
from friction_estimator.identification.inverse_dynamics.friction_columns import FrictionColumns, FrictionSite
from friction_estimator.identification.inverse_dynamics.observation import Observation
from friction_estimator.identification.joint_log import KP
from friction_estimator.identification.result import (
    FrictionSamples,
    ParameterTable,
    joined,
    propagated_sigma,
    thinned_out,
)
from friction_estimator.laws import FrictionLaw, LinearFrictionLaw, Role, make_law, make_linear_law
from friction_estimator.laws.fit_law import SampleNoise, fit_law
from friction_estimator.laws.identified import IdentifiedParameters
from friction_estimator.laws.law import load_slope
from friction_estimator.laws.linear import PRESLIDING_TERMS
from friction_estimator.laws.published import LOAD_VELOCITY
from friction_estimator.types import BoolArray, FloatArray

_SAMPLES, _VELOCITIES = 400, 25
_LOADS = np.array([-1.0, -0.6, -0.3, -0.1, 0.1, 0.3, 0.6, 1.0])
_REACH = 2.0
"""How far beyond the largest dry friction loads reach: the motor torque then has either sign."""
_GRID_WEIGHT = 0.01
"""Weight of loads that were not seen, relative to samples."""


def with_motor_torque_as_load(
    law: LinearFrictionLaw, values: FloatArray, covariance: FloatArray, velocity: FloatArray, load: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Parameters (p,) and covariance (p, p) of the law that takes the motor torque for the torque behind friction.

    alpha of Hamon et al. 2010, eq. 17, becomes ``alpha / (1 + alpha)`` where the joint drives, ``alpha / (1 - alpha)``
    where it is driven, and all else of these quadrants is divided by the same numbers; by least squares, so that it
    holds for any law, at the samples and, where these do not decide, at loads of both signs. The motor torque is that
    of the law itself: friction is a part of it, and where it is most of it, what another law leaves over would be
    explained by ``friction = motor torque``.

    Parameters
    ----------
    values, covariance : (p,), (p, p) of the law with the load behind friction
    velocity, load : (N,) at which friction was seen [rad/s], torque behind friction [N m]
    """
    if not law.depends_on_load:
        return values, covariance
    speeds, loads, weight = _points(law, values, velocity, load)
    phi = law.regressor(speeds, loads)
    friction = phi @ values
    motor = loads + friction
    found = fit_law(law, speeds, motor, friction, SampleNoise(friction, weight))
    slope = load_slope(law, found.values, speeds, motor)
    J = found.gradient @ (phi * (1.0 - slope)[:, None])  # friction changes, and with it the load
    return found.values, J @ covariance @ J.T + found.covariance


def _points(
    law: LinearFrictionLaw, values: FloatArray, velocity: FloatArray, load: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Velocities, loads, weights (K,): samples, and their velocities with loads of both signs beyond dry friction."""
    few = slice(None, None, max(1, velocity.size // _SAMPLES))
    speeds = velocity[:: max(1, velocity.size // _VELOCITIES)]
    dry = np.abs(law.regressor(speeds, np.zeros(speeds.size)) @ values).max()
    pairs = np.meshgrid(speeds, max(np.abs(load).max(), _REACH * dry) * _LOADS)
    weight = np.append(np.ones(velocity[few].size), np.full(pairs[0].size, _GRID_WEIGHT))
    return np.append(velocity[few], pairs[0]), np.append(load[few], pairs[1]), weight


@dataclass(frozen=True, slots=True)
class EstimatedFriction:
    """Friction of one joint at the kept samples of all motions, and how it depends on the parameters.

    Attributes
    ----------
    velocity : (K,) [rad/s]
    load : (K,) motor torque, by the model [N m]
    output : (K,) torque behind friction, tau_out, by the model [N m]
    output_jacobian : (K, p) of it by the model's parameters
    friction : (K,) by the model: all of it but what no law can hold (offset, temperature, position,
        presliding) [N m]
    jacobian : (K, p) of the friction by the model's parameters
    measured : (K,) measured torque minus the rest of the model [N m]
    used : (K,) rows of the fit
    """

    velocity: FloatArray
    load: FloatArray
    output: FloatArray
    output_jacobian: FloatArray
    friction: FloatArray
    jacobian: FloatArray
    measured: FloatArray
    used: BoolArray


def estimated_friction(estimate: Estimate, with_offset: Sequence[bool]) -> list[EstimatedFriction]:
    """Friction of every joint (n) as the estimate has it; ``with_offset`` where the law that will hold it has one."""
    model, f, values = estimate.model, estimate.model.friction_count, estimate.values
    offset = np.array([column.parameter.role is Role.OFFSET for column in model.columns], dtype=bool)
    in_law = np.array([column.in_law for column in model.columns], dtype=bool)
    held = [np.where(offset, own, in_law) for own in with_offset]
    parts: list[list[tuple[FloatArray | BoolArray, ...]]] = [[] for _ in held]
    for one, load, usable in zip(estimate.observations, estimate.loads, estimate.usable, strict=True):
        kept, velocity, rigid = one.filter.kept, one.motion.velocity, one.rigid[one.filter.kept]
        columns, torque = model.friction_columns(one, load)[kept], model.torque(one, values)
        changed = np.zeros_like(rigid)
        if model.depends_on_load:
            changed = model.friction.of_load(velocity, load, values[:f], one.rigid)[kept]
        residual = one.torque - one.filter.apply(torque)
        for joint, shown in enumerate(held):
            own = columns[:, joint] * shown
            friction, none = own @ values[:f], np.zeros_like(own)
            parts[joint].append(
                (
                    velocity[kept, joint],
                    torque[kept, joint],
                    load[kept, joint],
                    np.hstack((none, rigid[:, joint])),
                    friction,
                    np.hstack((own, changed[:, joint])),
                    friction + residual[:, joint],
                    usable[:, joint],
                )
            )
    return [EstimatedFriction(*(np.concatenate(one) for one in zip(*part, strict=True))) for part in parts]


def live_parameters(estimate: Estimate, law_names: Sequence[str]) -> IdentifiedParameters:
    """The estimate as one registered law a joint, whose load is the motor torque.

    A joint whose friction was estimated with that law gives its own parameters. Other friction (that of a motor that
    moves several joints, or of another model) is projected onto the law, at the samples of the fit. Laws that depend on
    the load are then fitted with the motor torque as the load.

    Parameters
    ----------
    law_names : (n) linear laws of the registry, or ``load_velocity``, which takes the Stribeck velocity of the estimate
    """
    joint_names = estimate.observations[0].motion.joint_names
    parameters, residual_variance, noise_variance, samples = [], [], [], []
    laws = [make_law(name) for name in law_names]
    for joint, (law, seen) in enumerate(
        zip(laws, estimated_friction(estimate, [law.has_offset for law in laws]), strict=True)
    ):
        use = seen.used
        linear, shape, spread = _linear(law, estimate.model.friction.sites[joint])
        values, covariance = np.zeros(len(linear.parameter_names)), np.diag(np.square(linear.prior_std))
        if use.any():
            values, covariance = _live(linear, seen, estimate.covariance)
        parameters.append((np.append(values, shape), block_diag(covariance, spread)))
        rho = estimate.fit.residual[estimate.fit.problem.joint == joint]
        noise = 0.5 * float(np.mean(np.diff(rho) ** 2)) if rho.size > 1 else 0.0
        misfit = seen.measured[use] - linear.regressor(seen.velocity[use], seen.load[use]) @ values
        residual_variance.append(max(float(np.mean(misfit**2)) - noise, 0.0) if use.any() else 0.0)
        noise_variance.append(noise)
        samples.append(float(use.sum()))
    found = joined(joint_names, law_names, parameters, residual_variance, noise_variance, samples)
    if not estimate.model.friction.presliding:
        return found
    names = estimate.model.names
    places = np.array([[names.index(f"{joint}/{term.name}") for term in PRESLIDING_TERMS] for joint in joint_names])
    spread = estimate.covariance[places[:, :, None], places[:, None, :]]
    return replace(found, presliding=estimate.values[places], presliding_covariance=spread)


def _linear(law: FrictionLaw, site: FrictionSite) -> tuple[LinearFrictionLaw, FloatArray, FloatArray]:
    """The law with the shape that the estimate has, and that shape (s,) with covariance, its last parameters."""
    if law is LOAD_VELOCITY and site.stribeck is not None:
        speed, sigma = site.stribeck
        return LOAD_VELOCITY.at(speed), np.array([speed]), np.array([[sigma**2]])
    return make_linear_law(law.name), np.zeros(0), np.zeros((0, 0))


def _live(law: LinearFrictionLaw, seen: EstimatedFriction, covariance: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Parameters of one joint with their covariance, the load being the motor torque."""
    velocity, output = seen.velocity[seen.used], seen.output[seen.used]
    found = fit_law(law, velocity, output, seen.friction[seen.used])
    jacobian = seen.jacobian[seen.used]
    if law.depends_on_load:  # a load that changes takes the columns of the law with it
        slope = load_slope(law, found.values, velocity, output)
        jacobian = jacobian - slope[:, None] * seen.output_jacobian[seen.used]
    gradient = found.gradient @ jacobian
    own = gradient @ covariance @ gradient.T + found.covariance
    return with_motor_torque_as_load(law, found.values, own, velocity, output)


def friction_samples(estimate: Estimate) -> tuple[FrictionSamples, ...]:
    """Friction of every joint over velocity and load, thinned out for figures."""
    chosen, names = [], estimate.observations[0].motion.joint_names
    for name, seen in zip(names, estimated_friction(estimate, [True] * len(names)), strict=True):
        keep = thinned_out(seen.velocity.size)
        chosen.append(
            FrictionSamples(
                name,
                seen.velocity[keep],
                seen.measured[keep],
                seen.load[keep],
                seen.friction[keep],
                propagated_sigma(seen.jacobian[keep], estimate.covariance),
                seen.used[keep],
            )
        )
    return tuple(chosen)


STANDSTILL = 0.005
"""Share of the reference speed below which a joint stands: it may hold any friction up to breaking away."""


def usable_rows(
    observations: Sequence[Observation], friction: FrictionColumns, dead_zone: FloatArray
) -> list[BoolArray]:
    """Rows (K, n) of every motion whose torque was measured, and whose sites all were fast enough meanwhile.

    Parameters
    ----------
    dead_zone : (k,) of the sites [rad/s]
    """
    masks = []
    for observation in observations:
        slow = np.abs(friction.speeds(observation.motion.velocity)) <= dead_zone
        spread = np.zeros_like(slow)
        for start, stop in observation.filter.stretches:
            window = observation.filter.decimate + 1 - observation.filter.decimate % 2
            spread[start:stop] = maximum_filter1d(slow[start:stop], window, axis=0, mode="nearest")
        touched = spread[observation.filter.kept].astype(float) @ (friction.directions != 0.0)
        measured = (observation.load != 0.0).any(axis=0)  # a torque that is zero all along is none
        masks.append((touched == 0.0) & measured)
    return masks


def moving_rows(
    friction: FrictionColumns, observations: Sequence[Observation], dead_zone: float | None
) -> tuple[FloatArray, str]:
    """Dead zone of every place of friction [rad/s], and why: as given, or where it stands."""
    reference = reference_speeds(observations, friction)
    zone = STANDSTILL * reference if dead_zone is None else np.full(reference.size, dead_zone)
    share = 1.0 - np.mean(np.concatenate(usable_rows(observations, friction, zone)), axis=0)
    each = ", ".join(
        f"{name} {speed:.3g} ({100 * left_out:.0f} %)"
        for name, speed, left_out in zip(observations[0].motion.joint_names, zone, share, strict=False)
    )
    return zone, f"slow samples are left out: below, in rad/s (and share), {each}"


_Row = tuple[str, str, float, float, float]
"""Name, unit, value, standard deviation and value of the URDF of a parameter."""


def parameter_table(solution: Estimate) -> ParameterTable:
    """All parameters of the fit, bodies with the values of the URDF, and what drives that get positions show."""
    model = solution.model
    reference = np.append(np.full(model.friction_count, np.nan), model.body.reference)[solution.kept]
    rows = list(
        zip(
            solution.names,
            solution.fit.problem.units,
            solution.fit.values,
            np.sqrt(np.diagonal(solution.fit.covariance)),
            reference,
            strict=True,
        )
    )
    if solution.of_drive:
        known = {row[0] for row in rows}
        rows += [row for row in _drive_parameters(solution, {row[0]: row for row in rows}) if row[0] not in known]
    names, units, values, sigma, urdf = zip(*rows, strict=True)
    return ParameterTable(names, units, np.array(values), np.array(sigma), np.array(urdf))


def _drive_parameters(solution: Estimate, found: Mapping[str, _Row]) -> list[_Row]:
    """Rows of delay, encoder offset (reading of the drive minus recorded position) and armature of every drive."""
    names = solution.observations[0].motion.joint_names
    rows = [(f"{name}/delay", "s", solution.delay, solution.delay_sigma, np.nan) for name in names]
    for joint, name in enumerate(names):
        kp = np.mean([one.motion.inputs[KP][:, joint].mean() for one in solution.observations])
        offset = found.get(f"{name}/offset")
        if offset is not None and kp > 0.0:
            rows.append((f"{name}/encoder_offset", "rad", offset[2] / kp, offset[3] / kp, np.nan))
    model, first = solution.model, solution.model.friction_count
    own = np.flatnonzero(solution.inertial)
    if own.size and np.isfinite(solution.urdf_sigma):
        inertia, sigma = model.body.drive_inertia(
            solution.kept[own] - first,
            solution.fit.values[own],
            solution.fit.covariance[np.ix_(own, own)],
            solution.urdf_sigma,
            drive_std(solution.observations),
        )
        rows += [(f"Ia {name}", "kg m^2", *pair, np.nan) for name, *pair in zip(names, inertia, sigma, strict=True)]
    return rows
