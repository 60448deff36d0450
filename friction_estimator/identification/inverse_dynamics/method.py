"""The method `inverse_dynamics`: base inertial parameters and friction of all joints in one least squares."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import compress
from types import MappingProxyType

import numpy as np

from friction_estimator.config.robot import Coupling
from friction_estimator.errors import ConfigError, InputError, choices
from friction_estimator.identification.fixed_base_model import FixedBaseModel
from friction_estimator.identification.inverse_dynamics.decision import (
    TreatmentChoice,
    better_laws,
    choose_laws,
    choose_treatment,
    decided,
    offset_columns,
)
from friction_estimator.identification.inverse_dynamics.delay import delay_error, noise_bias
from friction_estimator.identification.inverse_dynamics.drive_gains import (
    GAIN_UNIT,
    about_drive_gains,
    estimate_drive_gains,
    in_newton_metres,
    refuse_drive_gains,
    with_gain_errors,
)
from friction_estimator.identification.inverse_dynamics.estimated_parameters import (
    friction_samples,
    live_parameters,
    real_bodies,
    table_of_estimate,
)
from friction_estimator.identification.inverse_dynamics.estimation import Estimate, conditions, torque_sizes
from friction_estimator.identification.inverse_dynamics.findings import findings_of, joint_scores
from friction_estimator.identification.inverse_dynamics.observation import comparison_limits
from friction_estimator.identification.inverse_dynamics.options import (
    DEFAULT,
    InverseDynamicsOptions,
    friction_motors,
    live_laws,
    observations_of,
)
from friction_estimator.identification.joint_log import JointLog, RobotDescription
from friction_estimator.identification.linear_problem import REJECTED, robust_std
from friction_estimator.identification.prediction import TorquePrediction
from friction_estimator.identification.recording.motion import Motion, Treatment, to_motions, usual_treatment
from friction_estimator.identification.recording.sampling import FLAT
from friction_estimator.identification.recording.torque_checks import torque_suspicions, with_more_noise
from friction_estimator.identification.result import (
    Candidate,
    DriveGain,
    Identification,
    Part,
    Provenance,
    about_condition,
    about_score,
    merged,
)
from friction_estimator.identification.uncertainty import allowing_for_wrong_model, left_out_covariance
from friction_estimator.laws.joint_laws import AUTOMATIC
from friction_estimator.laws.published import LOAD_VELOCITY
from friction_estimator.types import FloatArray, Progress

INVERSE_DYNAMICS_METHOD = "inverse_dynamics"


def accepts(logs: Sequence[JointLog], robot: RobotDescription | None) -> tuple[bool, str]:
    """Whether motor torques of a robot with a fixed base were recorded, and the reason in a sentence."""
    if robot is None:
        return False, "inverse_dynamics needs the URDF of a robot with a fixed base"
    if not robot.fixed_base:
        return False, "inverse_dynamics needs a fixed base, this robot walks"
    if any(log.effort is None for log in logs):
        return False, "inverse_dynamics needs effort/<joint>, or command/<joint> and the gains kp and kd of the drives"
    return True, "motor torques of a robot with a fixed base were recorded"


def run(
    logs: Sequence[JointLog],
    robot: RobotDescription | None,
    options: InverseDynamicsOptions = DEFAULT,
    progress: Progress | None = None,
    warn: Callable[[str], None] | None = None,
) -> Identification:
    """Check the torques against the rigid-body model, and identify limb by limb; see `methods.IdentifyFunction`.

    Joints that move no link together are independent problems: each has its own treatment, delays and prior.

    Parameters
    ----------
    logs : of the same joints, with motor torques as efforts [N m]
    robot : with a fixed base; None raises
    options : of this method
    progress, warn : called with the number of finished limbs and of all; with each warning about the data

    Raises
    ------
    ConfigError
        When there is no robot, it walks, or the options do not fit.
    InputError
        When the logs cannot be used.
    """
    if robot is None:
        raise ConfigError("the method inverse_dynamics needs the robot: give the path of its URDF (--robot)")
    if not robot.fixed_base:
        raise ConfigError(
            "the method inverse_dynamics needs a fixed base, this robot walks; if it hung in a stand, set "
            "--set robot.fixed_base=true --set observer=momentum, else take the method friction_curve"
        )
    _refuse_unused(options, logs)
    whole = FixedBaseModel(robot.urdf_xml, logs[0].joint_names)
    live_laws(friction_motors(options, whole.joint_names).names, options)  # options that do not fit: before filtering
    split = _limbs(whole, logs, options)
    limbs = [(joints, whole if len(split) == 1 else FixedBaseModel(robot.urdf_xml, joints)) for joints in split]
    gains = dict[str, float]()
    if options.drive_gains:
        refuse_drive_gains(logs, options)
        usual = usual_treatment(logs, options.parallel_hz)
        for joints, model in limbs:
            motions = to_motions([log.select(joints) for log in logs], usual, options.folds)
            gains |= estimate_drive_gains(motions, model, options)
        logs = [in_newton_metres(log, gains) for log in logs]
    if warn is not None and whole.urdf_parameters.any():
        found = list(whole.warnings)
        for motion in to_motions(logs, usual_treatment(logs, options.parallel_hz), options.folds):
            rigid = whole.torque(motion.position, motion.velocity, motion.acceleration, motion.payload)
            found += [f"{motion.name}: {text}" for text in torque_suspicions(motion, rigid)]
        for text in found:
            warn(text)
    parts = []
    for number, (joints, model) in enumerate(limbs):
        chosen_logs, own = [log.select(joints) for log in logs], _options_of(options, joints)
        treatment = choose_treatment(chosen_logs, model, own)
        motions, noisy = (
            to_motions(some, treatment.treatment, own.folds)
            for some in (chosen_logs, [with_more_noise(log) for log in chosen_logs])
        )
        parts.append(_identify_part(motions, model, own, treatment, noisy, gains))
        if progress is not None:
            progress(number + 1, len(limbs))
    _refuse_moving_base(parts, len(whole.limbs))
    return merged(parts)


def _refuse_moving_base(parts: Sequence[Part], limbs: int) -> None:
    """Refuse torques of several limbs that no fixed base explains: the robot walks, or stands on them.

    Those of two limbs act against the weight and inertia of their limb, as those of legs do that carry the rest of the
    robot, whatever its arms do; or most torques do, or are predicted no better than by zero.

    Raises
    ------
    InputError
        With what to do.
    """
    seen = [(part, score) for part, _ in parts for score in part.scores if score.samples]
    bad = [score.joint for part, score in seen if not score.relative_error < 1.0 or part.parameters.urdf_scale < 0.0]
    against = sum(part.parameters.urdf_scale < 0.0 for part, _ in parts)
    if against > 1 or limbs > 1 and 2 * len(bad) > len(seen):
        raise InputError(
            f"torques of {choices(bad)} are not those of limbs on a base that does not move, they act against weight "
            "and inertia or are not predicted at all: the base of this robot is not fixed, its limbs touch something, "
            "or the sign of all torques is wrong. Friction of a walking robot needs its YAML and a bag with IMU and "
            "foot wrenches (friction_curve)"
        )


def _limbs(model: FixedBaseModel, logs: Sequence[JointLog], options: InverseDynamicsOptions) -> list[tuple[str, ...]]:
    """Joints that move links, or have motors, together; limbs without motion or torque belong to the first other."""
    groups = [set(limb) for limb in model.limbs]
    for joints, _ in () if options.coupling is None else options.coupling.groups:
        touched = [group for group in groups if group & set(joints)]
        groups = [group for group in groups if not group & set(joints)] + [set().union(*touched)]
    moves = set[str]()
    for log in logs:
        effort = np.zeros_like(log.position) if log.effort is None else np.nan_to_num(log.effort**2)
        shown = (np.ptp(log.position, axis=0) != 0.0) & (effort > 0.0).any(axis=0)
        moves |= set(compress(log.joint_names, shown.tolist()))
    moving = [group for group in groups if group & moves]
    if not moving:
        return [model.joint_names]
    moving[0] |= set(model.joint_names).difference(*moving)
    return [tuple(name for name in model.joint_names if name in group) for group in moving]


def _options_of(options: InverseDynamicsOptions, joints: Sequence[str]) -> InverseDynamicsOptions:
    """Options of some of the joints."""
    if options.coupling is None or set(options.coupling.joint_names) <= set(joints):
        return options
    places = [k for k, name in enumerate(options.coupling.joint_names) if name in joints]
    whole = options.coupling
    names, motors = (tuple(side[k] for k in places) for side in (whole.joint_names, whole.motor_names))
    return replace(options, coupling=Coupling(names, motors, whole.matrix[np.ix_(places, places)]))


def _refuse_unused(options: InverseDynamicsOptions, logs: Sequence[JointLog]) -> None:
    """Refuse options that need something which is not there."""
    if options.body.payload_scale and all(log.payload is None for log in logs):
        raise ConfigError(
            "payload_scale needs a payload: name the body that the robot carried, up to its mass (option payload)"
        )
    if options.stribeck_velocity is not None and options.law != LOAD_VELOCITY.name:
        raise ConfigError(
            f"stribeck_velocity is for the law {LOAD_VELOCITY.name!r} of this method, not for {options.law!r}"
        )


def identify_inverse_dynamics(
    motions: Sequence[Motion], model: FixedBaseModel, options: InverseDynamicsOptions = DEFAULT
) -> Identification:
    """Identify friction and inertia of a robot with a fixed base from its motor torques (Hamon et al. 2010).

    Parameters
    ----------
    motions : one per experiment, all with the joints of the model, each with its own payload
    model : of these joints
    options : what to estimate and how

    Raises
    ------
    ConfigError
        When a law is unknown or cannot be used here.
    InputError
        When a motion has no torque, or no joint moves enough.
    """
    gains = dict[str, float]()
    if options.drive_gains:
        refuse_drive_gains(motions, options)
        gains = estimate_drive_gains(motions, model, options)
    return merged([_identify_part([in_newton_metres(one, gains) for one in motions], model, options, gains=gains)])


def _identify_part(
    motions: Sequence[Motion],
    model: FixedBaseModel,
    options: InverseDynamicsOptions,
    treatment: TreatmentChoice | None = None,
    noisy: Sequence[Motion] = (),
    gains: Mapping[str, float] = MappingProxyType({}),
) -> Part:
    solution, notes = estimate_inverse_dynamics(motions, model, options, treatment, noisy, gains)
    left, standard, impossible = real_bodies(solution)
    friction = live_parameters(solution)
    prediction = _prediction(solution, options, motions)
    scores = joint_scores(solution, options.solver, options.folds, prediction.rows(motions, model))
    samples = friction_samples(solution)
    parameters = table_of_estimate(solution)
    names = model.joint_names
    motors, better = friction_motors(options, names), dict[str, tuple[Candidate, Candidate]]()
    if options.law != AUTOMATIC:
        better = better_laws(solution.model.body, solution.observations, options)
    findings = findings_of(solution, parameters, left, impossible, samples, names, motors, friction, better)
    findings += [finding for score in scores for finding in about_score(score)]
    findings += [*about_condition(solution.fit.condition, ", ".join(names)), *about_drive_gains(solution, options)]
    found = Identification(
        friction=friction,
        parameters=parameters,
        scores=scores,
        samples=samples,
        condition=solution.fit.condition,
        verdicts=(),
        provenance=Provenance(
            INVERSE_DYNAMICS_METHOD,
            tuple((motion.name, motion.digest) for motion in motions),
            tuple(f"{motion.name}: {choice}" for motion in motions for choice in motion.choices) + tuple(notes),
        ),
        inertia=prediction.inertia,
        bodies=standard,
        predictions=(prediction,),
        drives={name: DriveGain(0.0, gain, GAIN_UNIT) for name, gain in prediction.gains.items()},
        candidates=solution.candidates,
    )
    return found, findings


def estimate_inverse_dynamics(
    motions: Sequence[Motion],
    model: FixedBaseModel,
    options: InverseDynamicsOptions = DEFAULT,
    treatment: TreatmentChoice | None = None,
    noisy: Sequence[Motion] = (),
    gains: Mapping[str, float] = MappingProxyType({}),
) -> tuple[Estimate, list[str]]:
    """The estimate, and the choices in sentences; other arguments and errors as of :func:`identify_inverse_dynamics`.

    Parameters
    ----------
    treatment : chosen treatment; the changes by rival treatments are added to the covariance
    noisy : the motions with as much noise again, which show the bias by noise; empty: it is not in the covariance
    gains : torque per unit of the recorded effort that the motions have by now, by joint; none: efforts are torques
    """
    if not motions:
        raise InputError("there is no motion to identify from")
    if motions[0].joint_names != model.joint_names:
        raise InputError(
            f"the model has the joints {choices(model.joint_names)}, the data {choices(motions[0].joint_names)}"
        )
    body, observations = observations_of(motions, model, options)
    notes, table = list[str](), () if treatment is None else treatment.table
    if model.carried and not options.body.known_inertia:
        still = "; ".join(f"{link} with {', '.join(joints)}" for link, joints in model.carried.items())
        notes.append(f"links behind joints that stand still count as part of the link that carries them: {still}")
    if options.law == AUTOMATIC:
        options, laws = choose_laws(body, observations, options)
        table += laws
    solution, chosen = decided(body, observations, options)
    fit = allowing_for_wrong_model(solution.fit, conditions(solution), solution.prior)
    kept, late = solution.kept, solution.delay_variance
    fit = replace(fit, covariance=fit.covariance + _left_out_offsets(solution, options))
    spread = np.zeros((kept.size, kept.size)) if solution.spread is None else solution.spread[np.ix_(kept, kept)]
    if noisy:
        bias, delay_bias = noise_bias(solution, observations_of(noisy, model, options)[1])
        spread, late = spread + np.outer(bias, bias), late + delay_bias**2
    if treatment is not None and treatment.spread is not None:  # treatments that predict as well
        names = solution.model.names
        own = np.array([k for k, p in enumerate(kept) if names[p] in treatment.names], dtype=np.intp)
        other = np.array([treatment.names.index(names[kept[k]]) for k in own], dtype=np.intp)
        spread[np.ix_(own, own)] += treatment.spread[np.ix_(other, other)]
        late += float(treatment.spread[-1, -1])  # the last parameter of the comparison
    candidates, fit = (*table, *solution.candidates), replace(fit, covariance=fit.covariance + spread)
    solution = replace(solution, candidates=candidates, fit=fit, delay_variance=late)
    fit = replace(fit, covariance=fit.covariance + delay_error(solution))
    solution = replace(solution, fit=fit)
    return (with_gain_errors(solution, gains, options.solver) if gains else solution), notes + chosen


def _left_out_offsets(solution: Estimate, options: InverseDynamicsOptions) -> FloatArray:
    """Covariance (q, q) of the fit from constant torques that were left out: the zero of a torque is never known.

    In one direction of motion, they look like Coulomb friction.
    """
    model, joint = solution.model, solution.fit.problem.joint
    places = np.flatnonzero(offset_columns(model) & ~np.isin(np.arange(len(model.names)), solution.kept))
    if options.offset is not None or solution.of_drive or not places.size:
        return np.zeros_like(solution.fit.covariance)
    sites = [model.friction.joint_names.index(model.columns[k].site) for k in places]
    columns, sizes = (joint[:, None] == sites).astype(float), torque_sizes(solution.observations)[sites]
    return left_out_covariance(solution.fit, solution.prior, columns, sizes)


def _prediction(solution: Estimate, options: InverseDynamicsOptions, motions: Sequence[Motion]) -> TorquePrediction:
    """What the estimate predicts of any recording."""
    model = solution.model
    joint, band = solution.fit.problem.joint, max(comparison_limits(motions, options.parallel_hz))
    residuals = [solution.fit.residual[joint == k] for k in range(len(model.friction.joint_names))]
    limits = [REJECTED * robust_std(part) if part.size and options.solver.robust else np.inf for part in residuals]
    scale = solution.values[model.names.index("payload scale")] if options.body.payload_scale else 1.0
    return TorquePrediction(
        joints=motions[0].joint_names,
        treatment=replace(motions[0].treatment or Treatment(FLAT * band, band), band_hz=band),
        columns=model.friction,
        friction=tuple(solution.values[: model.friction_count].tolist()),
        inertia=model.body.standard_inertia(solution.values[model.friction_count :]),
        payloads=model.body.payload_values(solution.values[model.friction_count :]),
        delay=solution.delay,
        late_command=solution.late_command,
        hold=solution.hold,
        gains={} if solution.gains is None else dict(zip(motions[0].joint_names, solution.gains.tolist(), strict=True)),
        dead_zone=tuple(solution.dead_zone.tolist()),
        limits=tuple(limits),
        coupling=options.coupling,
        payload_scale=float(scale),
    )
