"""What an estimate means: one registered law per joint, whose load is the motor torque; a table; the nearest bodies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import block_diag

from friction_estimator.identification.inverse_dynamics.drive_gains import GAIN_UNIT
from friction_estimator.identification.inverse_dynamics.estimation import Estimate, drive_std
from friction_estimator.identification.joint_log import KP
from friction_estimator.identification.physical_bounds import nearest_physical
from friction_estimator.identification.result import (
    FrictionSamples,
    ParameterTable,
)
from friction_estimator.laws import LinearFrictionLaw, Role, make_law
from friction_estimator.laws.fit_law import SampleNoise, fit_law
from friction_estimator.laws.identified import IdentifiedParameters, joined, propagated_sigma
from friction_estimator.laws.law import load_slope
from friction_estimator.laws.linear import PRESLIDING_TERMS
from friction_estimator.laws.published import LOAD_VELOCITY
from friction_estimator.types import FloatArray

_LAW_SAMPLES, _GRID_VELOCITIES = 400, 25
_GRID_LOADS = np.array([-1.0, -0.6, -0.3, -0.1, 0.1, 0.3, 0.6, 1.0])
_LOAD_REACH = 2.0
"""How far beyond the largest dry friction loads reach: the motor torque then has either sign."""
_GRID_WEIGHT = 0.01
"""Weight of loads that were not seen, relative to samples."""


def with_motor_torque_as_load(
    law: LinearFrictionLaw, values: FloatArray, covariance: FloatArray, velocity: FloatArray, load: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Convert a law of the torque behind friction into a law of the motor torque, which the live node measures.

    Hamon et al. 2010, eq. 17: ``alpha`` becomes ``alpha / (1 + alpha)`` where the joint drives, ``alpha / (1 - alpha)``
    where it is driven; the other terms are divided alike. The fit is by least squares, so any law can be converted.
    It uses the samples and, with a small weight, loads of both signs, which decide what the samples leave open. The
    motor torque is the load plus the friction of the law itself: with the measured one, where friction is most of it,
    the errors of the law would be explained by ``friction = motor torque``.

    Parameters
    ----------
    law, values, covariance : law of the torque behind friction, its parameters (p,) and their covariance (p, p)
    velocity, load : (N,) at which friction was seen [rad/s], torque behind friction [N m]

    Returns
    -------
    Parameters (p,) and covariance (p, p) of the same law of the motor torque.
    """
    if not law.depends_on_load:
        return values, covariance
    few = slice(None, None, max(1, velocity.size // _LAW_SAMPLES))
    speeds = velocity[:: max(1, velocity.size // _GRID_VELOCITIES)]
    dry = np.abs(law.regressor(speeds, np.zeros(speeds.size)) @ values).max()
    pairs = np.meshgrid(speeds, max(np.abs(load).max(), _LOAD_REACH * dry) * _GRID_LOADS)
    weight = np.append(np.ones(velocity[few].size), np.full(pairs[0].size, _GRID_WEIGHT))
    speeds, loads = np.append(velocity[few], pairs[0]), np.append(load[few], pairs[1])
    phi = law.regressor(speeds, loads)
    friction = phi @ values
    motor = loads + friction
    found = fit_law(law, speeds, motor, friction, SampleNoise(friction, weight))
    slope = load_slope(law, found.values, speeds, motor)
    J = found.gradient @ (phi * (1.0 - slope)[:, None])  # friction changes, and with it the load
    return found.values, J @ covariance @ J.T + found.covariance


@dataclass(frozen=True, slots=True)
class EstimatedFriction:
    """Friction of one joint at the kept samples of all motions, and how it depends on the parameters."""

    # friction by the model is all but what no law can hold (offset, temperature, position, presliding); the load
    # is the motor torque, by the model
    samples: FrictionSamples
    output: FloatArray  # (K,) torque behind friction, tau_out, by the model [N m]
    output_jacobian: FloatArray  # (K, p) of it by the model's parameters
    jacobian: FloatArray  # (K, p) of the friction by the model's parameters


def _estimated_friction(estimate: Estimate, with_offset: Sequence[bool]) -> list[EstimatedFriction]:
    """Friction of every joint (n) as the estimate has it; ``with_offset`` where the law that will hold it has one."""
    model, f, values = estimate.model, estimate.model.friction_count, estimate.values
    offset = np.array([column.parameter.role is Role.OFFSET for column in model.columns], dtype=bool)
    in_law, parts = np.array([column.in_law for column in model.columns], dtype=bool), []
    for one, load, usable in zip(estimate.observations, estimate.loads, estimate.usable, strict=True):
        kept, velocity, rigid = one.filter.kept, one.motion.velocity, one.rigid[one.filter.kept]
        columns, torque = model.friction_columns(one, load)[kept], model.torque(one, values)
        changed = np.zeros_like(rigid)
        if model.depends_on_load:
            changed = model.friction.of_load(velocity, load, values[:f], one.rigid)[kept]
        residual = one.torque - one.filter.apply(torque)
        parts.append((velocity[kept], torque[kept], load[kept], rigid, columns, changed, residual, usable))
    velocity, torque, output, rigid, columns, changed, residual, used = map(np.concatenate, zip(*parts, strict=True))
    found = []
    for joint, (name, shown) in enumerate(zip(estimate.observations[0].motion.joint_names, with_offset, strict=True)):
        own = columns[:, joint] * np.where(offset, shown, in_law)
        friction, jacobian = own @ values[:f], np.hstack((own, changed[:, joint]))
        signals = velocity[:, joint], friction + residual[:, joint], torque[:, joint], friction
        samples = FrictionSamples(name, *signals, np.zeros(len(own)), used[:, joint])
        rates = np.hstack((np.zeros_like(own), rigid[:, joint]))
        found.append(EstimatedFriction(samples, output[:, joint], rates, jacobian))
    return found


def live_parameters(estimate: Estimate) -> IdentifiedParameters:
    """The estimate as one registered law per joint, whose load is the motor torque.

    A joint whose friction was estimated with that law gives its own parameters. Other friction (that of a motor that
    moves several joints, or of another model) is projected onto the law, at the samples of the fit. Laws that depend on
    the load are then fitted with the motor torque as the load.
    """
    joint_names, columns = estimate.observations[0].motion.joint_names, estimate.model.friction
    parameters, residual_variance, noise_variance, counts = [], [], [], []
    held = _estimated_friction(estimate, [make_law(name).has_offset for name in columns.law_names])
    for joint, (site, seen) in enumerate(zip(columns.sites, held, strict=False)):
        samples, use, law, shape = seen.samples, seen.samples.used, site.law, np.zeros((0, 2))
        if columns.stribeck:  # Stribeck velocity and its standard deviation, the last parameter
            law, shape = LOAD_VELOCITY.at(columns.stribeck[joint][0]), np.array([columns.stribeck[joint]])
        values, covariance = np.zeros(len(law.parameter_names)), np.diag(np.square(law.prior_std))
        if use.any():
            values, covariance = _live(law, seen, estimate.covariance)
        parameters.append((np.append(values, shape[:, 0]), block_diag(covariance, np.diag(shape[:, 1] ** 2))))
        rho = estimate.fit.residual[estimate.fit.problem.joint == joint]
        noise = 0.5 * float(np.mean(np.diff(rho) ** 2)) if rho.size > 1 else 0.0
        misfit = samples.friction[use] - law.regressor(samples.velocity[use], samples.load[use]) @ values
        residual_variance.append(max(float(np.mean(misfit**2)) - noise, 0.0) if use.any() else 0.0)
        noise_variance.append(noise)
        counts.append(float(use.sum()))
    found = joined(joint_names, columns.law_names, parameters, residual_variance, noise_variance, counts)
    if not columns.presliding:
        return found
    names = estimate.model.names
    places = np.array([[names.index(f"{joint}/{term.name}") for term in PRESLIDING_TERMS] for joint in joint_names])
    spread = estimate.covariance[places[:, :, None], places[:, None, :]]
    return replace(found, presliding=estimate.values[places], presliding_covariance=spread)


def _live(law: LinearFrictionLaw, seen: EstimatedFriction, covariance: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Parameters of one joint with their covariance, the load being the motor torque."""
    use = seen.samples.used
    velocity, output, jacobian = seen.samples.velocity[use], seen.output[use], seen.jacobian[use]
    found = fit_law(law, velocity, output, seen.samples.fitted[use])
    if law.depends_on_load:  # a load that changes takes the columns of the law with it
        slope = load_slope(law, found.values, velocity, output)
        jacobian = jacobian - slope[:, None] * seen.output_jacobian[use]
    gradient = found.gradient @ jacobian
    own = gradient @ covariance @ gradient.T + found.covariance
    return with_motor_torque_as_load(law, found.values, own, velocity, output)


def friction_samples(estimate: Estimate) -> tuple[FrictionSamples, ...]:
    """Friction of every joint over velocity and load, thinned out for figures."""
    every = _estimated_friction(estimate, [True] * len(estimate.observations[0].motion.joint_names))
    return tuple(
        one.samples.thinned(propagated_sigma(one.jacobian[one.samples.shown], estimate.covariance)) for one in every
    )


_Row = tuple[str, str, float, float, float]
"""Name, unit, value, standard deviation and value of the URDF of a parameter."""


def table_of_estimate(solution: Estimate) -> ParameterTable:
    """Table of all parameters of the fit: bodies next to their values in the URDF, friction, and delays of drives."""
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
    if solution.gains is not None and solution.gain_covariance is not None:
        spread = solution.gains * np.sqrt(np.diagonal(solution.gain_covariance))
        found = zip(solution.observations[0].motion.joint_names, solution.gains, spread, strict=True)
        rows += [(f"{name}/drive_gain", GAIN_UNIT, gain, sigma, np.nan) for name, gain, sigma in found]
    names, units, values, sigmas, urdf = zip(*rows, strict=True)
    return ParameterTable(names, units, np.array(values), np.array(sigmas), np.array(urdf))


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


def real_bodies(solution: Estimate) -> tuple[float, dict[str, float], dict[str, tuple[float, float]]]:
    """The bodies that exist and are nearest to the identified ones.

    Base parameters become those of the bodies, and all others move by their covariance with them.

    Returns
    -------
    left : share of the torque that these bodies do not explain, zero where noise explains it
    standard : their standard parameters and those of drives, with the friction that goes with them, by name
    impossible : identified parameters that noise does not explain, by name, and their values for real bodies
    """
    first, inertial, body = solution.model.friction_count, solution.inertial, solution.model.body
    if not inertial.any() or not body.link_reference.size:
        return 0.0, {}, {}
    V, problem = solution.fit.covariance, solution.fit.problem
    bodies = nearest_physical(
        body.base.grouping[solution.kept[inertial] - first],
        solution.fit.values[inertial],
        V[np.ix_(inertial, inertial)],
        body.link_reference,
    )
    step = np.linalg.lstsq(V[np.ix_(inertial, inertial)], bodies.base - solution.fit.values[inertial], rcond=1e-12)[0]
    values = solution.fit.values + V[:, inertial] @ step
    values[inertial] = bodies.base
    values = np.where(problem.nonnegative, np.maximum(values, 0.0), values)
    left = float(np.linalg.norm(problem.y - problem.W @ values) / np.linalg.norm(problem.y))
    standard = dict(zip(body.standard_names, bodies.standard.tolist(), strict=True))
    standard |= {solution.model.names[k]: float(values[place]) for place, k in enumerate(solution.kept) if k < first}
    far, places = bodies.impossible, np.flatnonzero(inertial)
    impossible = {
        solution.names[places[k]]: (float(solution.fit.values[places[k]]), float(bodies.base[k]))
        for k in np.flatnonzero(far)
    }
    return 0.0 if bodies.plausible else left, standard, impossible
