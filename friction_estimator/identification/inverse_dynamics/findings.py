"""Held-out errors of an estimate, and findings about it, one sentence each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from friction_estimator.identification.inverse_dynamics.delay import delay_error
from friction_estimator.identification.inverse_dynamics.estimation import DATA_TOLERANCE, Estimate, conditions
from friction_estimator.identification.inverse_dynamics.friction_columns import FrictionSite
from friction_estimator.identification.inverse_dynamics.options import JOINTS_AND_MOTORS
from friction_estimator.identification.linear_problem import (
    SolverOptions,
    folds_of,
    rms,
    select_columns,
    select_rows,
    solve_values,
)
from friction_estimator.identification.result import (
    GAIN_EXPLAINS,
    SURE_SIGMAS,
    VAGUE,
    Candidate,
    Finding,
    FrictionSamples,
    JointScore,
    ParameterTable,
    Severity,
    about_direction,
    about_law,
    more_motion,
    moves_one_way,
)
from friction_estimator.identification.scoring import RARE, Rows, pushes
from friction_estimator.identification.uncertainty import outliers, velocity_dependent_rms, without_velocity
from friction_estimator.laws import LinearFrictionLaw, Role, make_law
from friction_estimator.laws.identified import IdentifiedParameters, JointLaw
from friction_estimator.robot.transmission import Transmission
from friction_estimator.tables import number
from friction_estimator.types import FloatArray


def joint_scores(solution: Estimate, solver: SolverOptions, folds: int, rows: Rows) -> tuple[JointScore, ...]:
    """k-fold validation by segment, compared with "predict zero" and the best rigid body without friction.

    A row is predicted from parameters and weights that its own fold had no part in, and is a push by the same limit as
    in `validate`. What the data decided as a whole (treatment, prior, offsets, delays, q_s, the load of the friction)
    is not decided again in every fold.

    Parameters
    ----------
    rows : what the estimate predicts of its own data, which rows count, and the errors of the fit
    """
    model, kept, fit = solution.model, solution.kept, solution.fit
    given = solution.observations, solution.loads, solution.usable
    plain = model.problem(*given)
    linear = model.problem(*given, solution.values) if model.depends_on_load else plain
    joint, fold, errors = fit.problem.joint, folds_of(fit.problem, folds), []
    for whole, places in ((plain, np.flatnonzero(kept >= model.friction_count)), (linear, np.arange(kept.size))):
        problem, prior = select_columns(whole, kept[places]), solution.prior.select(places)
        error = problem.y.copy()
        for one in np.unique(fold) if places.size else ():
            unseen = fold == one
            values = solve_values(select_rows(problem, ~unseen), solver, prior).values
            error[unseen] -= problem.W[unseen] @ values
        errors.append(error)
    found = []
    for k, score in enumerate(rows.scores()):
        own = joint == k
        scored = ~pushes(errors[1][own], rows.limits[k])
        rigid, held_out_error = (rms(error[own][scored]) for error in errors)
        found.append(replace(score, rigid_body_error=rigid, held_out_error=held_out_error))
    return tuple(found)


_GOOD_BODIES = 0.1
"""Share of the torque that the nearest bodies that exist may leave, however sure the identified ones are."""
_MANY_OUTLIERS = 0.01
"""Share of the rows; noise has none beyond six standard deviations."""
_VAGUE_VISCOUS = 0.1
"""Share of a parameter that its sigma may be."""
_IMPOSSIBLE_SCALE = 5.0
"""Factor from the URDF's inertia that no wrong URDF explains."""
_NAMED = 3
"""Most parameters in one sentence."""
_OTHER_FACTOR = 0.1
"""Relative difference from the torque of the URDF that is worth a sentence."""


def findings_of(
    solution: Estimate,
    parameters: ParameterTable,
    left: float,
    impossible: Mapping[str, tuple[float, float]],
    samples: Sequence[FrictionSamples],
    joint_names: Sequence[str],
    motors: Transmission,
    live: IdentifiedParameters,
    better: Mapping[str, tuple[Candidate, Candidate]],
) -> list[Finding]:
    """Findings about bodies and their scale, friction, constant torques, delays, outliers, and shared motors.

    Parameters
    ----------
    parameters : of the estimate
    left : share of the torque that the nearest bodies that exist leave, zero where noise explains it
    impossible : parameters of no real bodies, and their nearest values, see :func:`real_bodies`
    samples : (n) friction as the data show it, of joints or the motors in their place
    joint_names, motors : (n) joints, and the motors whose friction it is
    live : (n) one law per joint
    better : laws that predict unseen data clearly better, by joint or motor, each with the given one
    """
    found, laws = [], solution.model.friction.law_names
    names = solution.observations[0].motion.joint_names
    limb = ", ".join(names)
    if left > _GOOD_BODIES:
        text = (
            "no real bodies have these inertial parameters: the nearest ones leave {} of the torque: check sign and "
            "unit of the torque, the joints of the URDF, and that nobody else moved the robot"
        )
        detail = f"{100.0 * left:.0f} in place of {100.0 * solution.fit.relative_error:.0f} %"
        found.append(Finding(Severity.FAULT, text, limb, detail))
    elif impossible:
        wrong = [f"{name} {value:.2g} (nearest {near:.2g})" for name, (value, near) in impossible.items()]
        more = f" and {len(wrong) - _NAMED} more" * (len(wrong) > _NAMED)
        text = (
            "no real bodies have {}: the motion hardly shows it, or something is not in the model; record faster "
            "motion of these joints before you use their inertia"
        )
        found.append(Finding(Severity.DOUBT, text, detail=f"{'; '.join(wrong[:_NAMED])}{more}"))
    scale = parameters.urdf_scale
    if not 1.0 / _IMPOSSIBLE_SCALE < scale < _IMPOSSIBLE_SCALE:
        text = (
            "the inertial parameters are {} times those of the URDF: check unit and sign of the torque, whether it is "
            "that of the motor before its gear, and the masses of the URDF"
        )
        found.append(Finding(Severity.FAULT, text, limb, f"{scale:.3g}"))
    else:
        text = (
            "the torques of the rigid bodies are those of the URDF times {}: check the masses of the URDF, a payload, "
            "and the gain of the torque"
        )
        factors = _urdf_factors(solution).items()
        found += [Finding(Severity.NOTE, text, name, f"{factor:.2f}") for name, factor in factors]
    shapes = [
        one for seen, law in zip(samples, laws, strict=True) for one in about_law(seen, law, better.get(seen.joint))
    ]
    rejected, joint = outliers(solution.fit, conditions(solution)[0]), solution.fit.problem.joint
    for k, name in enumerate(names):
        share = float(rejected[joint == k].mean()) if (joint == k).any() else 0.0
        if share > _MANY_OUTLIERS:
            scored = "not used" if share > RARE else "neither used nor scored"
            text = f"{{}} of the samples are outliers and {scored} (pushes?)"
            found.append(Finding(Severity.DOUBT, text, name, f"{100.0 * share:.1f} %", share))
    lacking = {name for name, law in zip(names, laws, strict=True) if not make_law(law).has_offset}
    text = "a constant torque that is no part of the law was found: {}; check the zero of the torque and gravity"
    constants = [
        Finding(Severity.NOTE, text, column.site, f"{value:+.3g} N m")
        for column, value in zip(solution.model.columns, solution.values, strict=False)
        if column.parameter.role is Role.OFFSET and column.site in lacking and value
    ]
    found += [*_about_delay(solution), *shapes, *constants]
    if motors.couples:
        found += _about_joints_of_motors(samples, motors, joint_names)
    return [*found, *_about_projection(samples, solution.model.friction.added, live), *_about_friction(solution)]


def _urdf_factors(solution: Estimate) -> dict[str, float]:
    """Joints whose identified bodies have the torque of the URDF times a factor, and this factor.

    It explains most of the difference from the URDF, whatever the inertia of the drive is.
    """
    body, first, factors = solution.model.body, solution.model.friction_count, dict[str, float]()
    reference = body.urdf_values
    if not reference.any():
        return factors
    values, V = solution.values[first:], solution.covariance[first:, first:]
    parts = [
        (one.smooth, one.filter.apply(one.motion.acceleration), mask)
        for one, mask in zip(solution.observations, solution.usable, strict=True)
    ]
    for joint, name in enumerate(solution.observations[0].motion.joint_names):
        rows = [(smooth[mask[:, joint], joint], drive[mask[:, joint], joint]) for smooth, drive, mask in parts]
        W, drive = (np.concatenate(side) for side in zip(*rows, strict=True))
        urdf, bodies = W @ reference, W @ values
        beside = urdf - drive * float(drive @ urdf) / max(float(drive @ drive), np.finfo(float).tiny)
        if not np.linalg.norm(beside) > DATA_TOLERANCE * np.linalg.norm(urdf):  # no link, or one that is like a drive
            continue
        weights = np.linalg.pinv(np.column_stack((urdf, drive)))
        factor, sigma = float(weights[0] @ bodies), float(np.sqrt(np.maximum(weights[0] @ W @ V @ W.T @ weights[0], 0)))
        rest, whole = (
            one - drive * float(drive @ one) / max(float(drive @ drive), np.finfo(float).tiny)
            for one in (bodies - factor * urdf, bodies - urdf)
        )
        explained = float(rest @ rest) < (1.0 - GAIN_EXPLAINS) * float(whole @ whole)
        if explained and abs(factor - 1.0) > max(_OTHER_FACTOR, SURE_SIGMAS * sigma):
            factors[name] = factor
    return factors


def _about_delay(solution: Estimate) -> list[Finding]:
    """A torque that was late, and viscous friction that may be nothing but that."""
    found, late = [], f"{1e3 * solution.delay:.2f} +- {1e3 * solution.delay_sigma:.2f} ms"
    limb = ", ".join(solution.observations[0].motion.joint_names)
    if abs(solution.delay) > SURE_SIGMAS * solution.delay_sigma:
        if solution.of_drive:
            part, feedback = ("command", "not late") if solution.late_command else ("torque", "as late as its command")
            text = (
                f"the {part} of the drives acts {{}} late; viscous friction and inertia are those of a drive whose "
                f"feedback is {feedback}: otherwise they differ by kp and kd times the delay"
            )
        else:
            text = (
                "the torque was {} late compared with the positions (early where negative) and was moved back, because "
                "the delay would count as viscous friction"
            )
        found.append(Finding(Severity.DOUBT, text, limb, late))
    error, sigma = (np.sqrt(np.diagonal(covariance)) for covariance in (delay_error(solution), solution.fit.covariance))
    joints = []
    for k, value, shift, spread in zip(solution.kept, solution.fit.values, error, sigma, strict=True):
        column = solution.model.columns[k] if k < solution.model.friction_count else None
        viscous = column is not None and column.in_law and column.parameter.role is Role.VISCOUS
        if column is not None and viscous and spread > _VAGUE_VISCOUS * value and 2.0 * shift**2 > spread**2:
            joints.append(column.site)
    for joint in dict.fromkeys(joints):
        text = (
            "this motion cannot separate viscous friction from a torque that is {} late: record motion with several "
            "frequencies or constant speeds (friction_estimator plan)"
        )
        found.append(Finding(Severity.DOUBT, text, joint, f"{1e3 * solution.delay_sigma:.1f} ms"))
    return found


_WORTH_REPORTING = 0.05
"""Share of the friction of a joint that its motors leave."""


def _about_joints_of_motors(
    samples: Sequence[FrictionSamples], motors: Transmission, joint_names: Sequence[str]
) -> list[Finding]:
    """Joints (n) whose friction is not all of their motors, whose friction is given at the same instants."""
    velocity, fitted, used = (
        np.column_stack([getattr(one, name) for one in samples]) for name in ("velocity", "fitted", "used")
    )
    left = np.column_stack([without_velocity(one.velocity, one.friction - one.fitted) for one in samples])
    velocity, fitted, left = velocity @ motors.matrix.T, motors.at_joints(fitted), motors.at_joints(left)
    usable = np.asarray(used[:, motors.group].all(axis=2))
    several = np.maximum(np.count_nonzero(motors.matrix, axis=1), np.count_nonzero(motors.weights, axis=1)) > 1
    found = []
    for joint in map(int, np.flatnonzero(several)):
        rows = usable[:, joint]
        rms = velocity_dependent_rms(velocity[rows, joint], left[rows, joint])
        size = float(np.sqrt(np.mean(fitted[rows, joint] ** 2))) if rows.any() else 0.0
        if rms > _WORTH_REPORTING * size > 0.0:
            text = (
                "the friction of its motors does not explain {} of the friction, which change with the velocity of the "
                "joint. Either the joint has friction, too: identify again with --coupled-friction "
                f"{JOINTS_AND_MOTORS} (coupled_friction in Python); or the coupling matrix of joints and motors is "
                "wrong"
            )
            detail = f"{rms:.2g} N m RMS, {rms / size:.0%}"
            found.append(Finding(Severity.DOUBT, text, joint_names[joint], detail))
    return found


def _about_projection(
    samples: Sequence[FrictionSamples], added: Sequence[FrictionSite], live: IdentifiedParameters
) -> list[Finding]:
    """The error of the joints' laws (n) for motors that add to the friction of several joints."""
    lost = []
    for joint, seen in enumerate(samples):
        if any(site.direction[joint] != 0.0 for site in added):
            rest = seen.fitted - JointLaw.from_identified(live, seen.joint).torque(seen.velocity, seen.load)
            lost.append(f"{np.std(rest[seen.used]):.2g} N m RMS of {seen.joint}" if seen.used.any() else seen.joint)
    if not lost:
        return []
    names = ", ".join(site.name for site in added)
    text = (
        f"{names} {'adds' if len(added) == 1 else 'add'} friction to several joints; the file has one law per joint, "
        f"for a robot without robot.coupling, with an error of {' and '.join(lost)}: the whole friction is in the "
        "table of parameters only"
    )
    return [Finding(Severity.DOUBT, text)]


def _about_friction(solution: Estimate) -> list[Finding]:
    """Parameters of friction that the data do not show, at joints, and at motors that add to the friction of several.

    Friction of such a joint may as well be zero.
    """
    friction, first, found, shown = solution.model.friction, 0, list[Finding](), set[str]()
    for site in friction.sites:
        part = slice(first, first := first + len(site.law.parameters))
        others = [motor.name for motor in friction.added if (motor.direction * site.direction).any()]
        own = site.name in friction.joint_names and others
        name = f"{site.name} without {', '.join(others)}" if own else site.name
        velocity = np.concatenate(
            [
                (one.motion.velocity[one.filter.kept] @ site.direction)[mask[:, site.direction != 0.0].any(axis=1)]
                for one, mask in zip(solution.observations, solution.usable, strict=True)
            ]
        )
        if velocity.size:
            shown |= set() if moves_one_way(velocity) else {site.name}
            values, covariance = solution.values[part], solution.covariance[part, part]
            found += _about_parameters(name, site.law, values, covariance, bool(own), velocity)
    columns = [(solution.model.columns[k], solution.values[k]) for k in solution.kept if k < first]
    viscous = [one for one in columns if one[0].in_law and one[0].parameter.role is Role.VISCOUS]
    if any(one.site in shown and value <= 0.0 for one, value in viscous):
        text = (
            "viscous friction is not above zero: a drive that acts on older readings than its recorded torque lowers "
            "it by kp times their age, in all joints of such drives: compare recordings with other gains, or state "
            "commands and gains (--kp, --kd)"
        )
        found += [Finding(Severity.DOUBT, text, name) for name in friction.joint_names]
    return found


_UNSEEN_SHARE = 0.5
"""A parameter whose sigma is more than this share of its prior was not seen."""


def _about_parameters(
    name: str, law: LinearFrictionLaw, values: FloatArray, covariance: FloatArray, optional: bool, velocity: FloatArray
) -> list[Finding]:
    """Parameters (p,) of a law that the data do not show, and the motion that would.

    Parameters
    ----------
    optional : they may as well be zero
    velocity : (N,) of the samples of the fit [rad/s]
    """
    sigma, found, remedy = np.sqrt(np.diagonal(covariance)), list[Finding](), more_motion(velocity)
    found += about_direction(name, velocity)
    for k in map(int, np.flatnonzero(law.nonnegative)):
        parameter = law.parameter_names[k]
        if sigma[k] > _UNSEEN_SHARE * max(law.prior_std[k], abs(values[k])):
            text = f"{parameter} cannot be seen in this motion, with a sigma of {{}}: {remedy}"
            found.append(Finding(Severity.FAULT, text, name, f"{sigma[k]:.2g} {law.units[k]}"))
        elif values[k] <= 0.0 and not optional:
            text = f"{parameter} would be negative and was held at zero: check the torque and the model"
            found.append(Finding(Severity.DOUBT, text, name))
    basis = np.eye(values.size)
    sides = ("Coulomb", "N m", law.coulomb(basis)), ("viscous", "N m s/rad", law.viscous(basis))
    for what, unit, weights in sides:
        value, spread = float(weights @ values), float(np.sqrt(weights @ covariance @ weights))
        if value > 0.0 and VAGUE * value < spread:
            how, detail = "does not differ from zero, {}", f"{number(value, spread)} +- {spread:.2g} {unit}"
            if spread < value:
                how, detail = "has a standard deviation of {}", f"{100 * spread / value:.0f} %"
            found.append(Finding(Severity.DOUBT, f"{what} friction {how}: {remedy}", name, detail))
    return found
