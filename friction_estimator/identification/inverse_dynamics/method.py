"""The method `inverse_dynamics`: base inertial parameters and friction of all joints in one least squares."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from friction_estimator.errors import ConfigError, InputError, choices
from friction_estimator.identification.fixed_base_model import FixedBaseModel
from friction_estimator.identification.inverse_dynamics.estimated_friction import (
    friction_samples,
    live_parameters,
    moving_rows,
)
from friction_estimator.identification.inverse_dynamics.estimation import Estimate, TorqueModel, estimate
from friction_estimator.identification.inverse_dynamics.findings import (
    about_joints_of_motors,
    about_projection,
    friction_for_diagnosis,
    inverse_dynamics_findings,
    joint_scores,
)
from friction_estimator.identification.inverse_dynamics.observation import Observation, observe, parallel_cutoff
from friction_estimator.identification.inverse_dynamics.options import (
    DEFAULT,
    MOTORS,
    InverseDynamicsOptions,
    added_motors,
    coupled_choices,
    friction_motors,
    friction_of_options,
    live_laws,
)
from friction_estimator.identification.inverse_dynamics.refinement import (
    allowing_for_delay,
    conditions,
    physical_inertia,
    search_stribeck_velocity,
    shift_torque,
    torque_delay,
    with_physical_inertia,
    without_insignificant,
)
from friction_estimator.identification.joint_log import JointLog, Motion, RobotDescription
from friction_estimator.identification.recording.checks import check_torque_signs
from friction_estimator.identification.recording.zero_phase import Progress, to_motions
from friction_estimator.identification.result import Identification, ParameterTable, Provenance, verdicts
from friction_estimator.identification.rigid_body import RigidBody
from friction_estimator.identification.uncertainty import allowing_for_wrong_model
from friction_estimator.laws.nonlinear import LOAD_VELOCITY

METHOD = "inverse_dynamics"


def accepts(logs: Sequence[JointLog], robot: RobotDescription | None) -> tuple[bool, str]:
    """Whether motor torques of a robot with a fixed base were recorded, and the reason in a sentence."""
    if robot is None:
        return False, "inverse_dynamics needs the URDF of a robot with a fixed base"
    if not robot.fixed_base:
        return False, "inverse_dynamics needs a fixed base, this robot walks"
    if any(log.effort is None for log in logs):
        return False, "inverse_dynamics needs effort/<joint>"
    return True, "motor torques of a robot with a fixed base were recorded"


def run(
    logs: Sequence[JointLog],
    robot: RobotDescription | None,
    options: InverseDynamicsOptions = DEFAULT,
    progress: Progress | None = None,
    warn: Callable[[str], None] | None = None,
) -> Identification:
    """Filter the logs, check the signs of the torques against the rigid-body model, and identify.

    Parameters
    ----------
    logs : one an experiment, of the same joints
    robot : with a fixed base
    progress : called with the number of filtered logs, and of all steps
    warn : called with each warning about the data

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
    model = FixedBaseModel(robot.urdf_xml, logs[0].joint_names)
    live_laws(friction_motors(options, model.joint_names).names, options)  # options that do not fit: before filtering
    motions = to_motions(logs, options.cutoff_hz, options.folds, progress)
    if warn is not None and model.urdf_parameters.any():
        for text in (*model.warnings, *_torque_warnings(motions, model)):
            warn(text)
    return identify_inverse_dynamics(motions, model, options)


def _refuse_unused(options: InverseDynamicsOptions, logs: Sequence[JointLog]) -> None:
    """Refuse options that need something which is not there."""
    if options.body.payload_scale and all(log.payload is None for log in logs):
        raise ConfigError("payload_scale needs a payload: the body that the robot carried, up to its mass")
    if options.stribeck_velocity is not None and options.law != LOAD_VELOCITY.name:
        raise ConfigError(
            f"stribeck_velocity is for the law {LOAD_VELOCITY.name!r} of this method, not for {options.law!r}"
        )
    if options.coupled_friction != MOTORS and options.coupling is None:
        raise ConfigError(
            f"coupled_friction {options.coupled_friction!r} is for motors that move joints together: give their "
            "coupling, or robot.coupling in the robot's YAML"
        )


def _torque_warnings(motions: Sequence[Motion], model: FixedBaseModel) -> list[str]:
    """Torques that contradict the URDF's inertia, without those that ``data_warnings`` finds from the log alone."""
    found = []
    for motion in motions:
        if motion.effort is None:
            continue
        rigid = model.torque(motion.position, motion.velocity, motion.acceleration, motion.payload)
        if texts := check_torque_signs(motion, rigid):
            known = {text.split()[0] for text in check_torque_signs(motion)}  # each begins with effort/<joint>
            found += [f"{motion.name}: {text}" for text in texts if text.split()[0] not in known]
    return found


def identify_inverse_dynamics(
    motions: Sequence[Motion],
    model: FixedBaseModel,
    options: InverseDynamicsOptions = DEFAULT,
) -> Identification:
    """Identify friction and inertia of a robot with a fixed base from its motor torques (Hamon et al. 2010).

    Parameters
    ----------
    motions : one an experiment, all with the joints of the model, each with its own payload
    model : of these joints
    options : what to estimate and how

    Raises
    ------
    ConfigError
        When a law is unknown or cannot be used here.
    InputError
        When a motion has no torque, or no joint moves enough.
    """
    solution, notes = estimate_inverse_dynamics(motions, model, options)
    bodies = physical_inertia(solution)
    if options.physical and bodies is not None:
        solution = with_physical_inertia(solution, bodies)
        notes.append("inertial parameters are those of the nearest real bodies")
    motors = friction_motors(options, model.joint_names)
    laws = live_laws(motors.names, options)
    friction = live_parameters(solution, laws)
    scores = joint_scores(solution, options.solver, options.folds)
    samples = friction_samples(solution)
    findings = inverse_dynamics_findings(solution, bodies, samples, laws)
    findings += about_joints_of_motors(samples, motors, model.joint_names) if motors.couples else []
    diagnosed, optional = friction_for_diagnosis(solution, friction)
    findings += about_projection(samples, added_motors(solution.model.friction), friction)
    return Identification(
        friction=friction,
        parameters=_parameters(solution),
        scores=scores,
        samples=samples,
        condition=solution.fit.condition,
        verdicts=verdicts(scores, diagnosed, solution.fit.condition, findings, optional),
        provenance=Provenance(
            METHOD,
            tuple((motion.name, motion.digest) for motion in motions),
            tuple(f"{motion.name}: {choice}" for motion in motions for choice in motion.choices) + tuple(notes),
        ),
        inertia=solution.model.body.standard_inertia(solution.values[solution.model.friction_count :]),
    )


def estimate_inverse_dynamics(
    motions: Sequence[Motion], model: FixedBaseModel, options: InverseDynamicsOptions = DEFAULT
) -> tuple[Estimate, list[str]]:
    """The estimate itself, and what was chosen from the data, in sentences; arguments and errors as above."""
    if not motions:
        raise InputError("there is no motion to identify from")
    if motions[0].joint_names != model.joint_names:
        raise InputError(
            f"the model has the joints {choices(model.joint_names)}, the data {choices(motions[0].joint_names)}"
        )
    motors = friction_motors(options, model.joint_names)
    body = RigidBody(model, options.body, options.coupling)
    cutoffs = [
        parallel_cutoff(motion) if options.parallel_hz is None else (options.parallel_hz, "as given")
        for motion in motions
    ]
    observations = observe(motions, body, [cutoff for cutoff, _ in cutoffs], motors)
    notes = [
        f"{motion.name}: both sides of the equation pass a low-pass of {cutoff:.3g} Hz, {why}"
        for motion, (cutoff, why) in zip(motions, cutoffs, strict=True)
    ]
    if model.carried and not options.body.known_inertia:
        still = "; ".join(f"{link} with {', '.join(joints)}" for link, joints in model.carried.items())
        notes.append(f"links behind joints that stand still count as part of the link that carries them: {still}")
    solution, chosen = _compensate_delay(body, motors.names, observations, options)
    if options.significance is not None:
        late, unknown = solution.delay, solution.delay_sigma
        solution, sentence = without_insignificant(solution, options.significance, options.solver)
        solution = replace(solution, delay=late, delay_sigma=unknown)
        chosen.append(sentence)
    fit = allowing_for_wrong_model(solution.fit, conditions(solution), solution.prior_std)
    return allowing_for_delay(replace(solution, fit=fit)), notes + chosen


def _compensate_delay(
    body: RigidBody, names: Sequence[str], observations: Sequence[Observation], options: InverseDynamicsOptions
) -> tuple[Estimate, list[str]]:
    """All parameters, from torques that were moved back where they are late beyond doubt."""
    solution, chosen = _all_parameters(body, names, observations, options)
    seen = torque_delay(solution, options.solver)
    if not seen.sure:
        return replace(solution, delay_sigma=float(np.hypot(seen.seconds, seen.sigma))), chosen
    observations = shift_torque(observations, seen.seconds)
    rest = torque_delay(_all_parameters(body, names, observations, options)[0], options.solver)
    solution, chosen = _all_parameters(body, names, shift_torque(observations, rest.seconds), options)
    return replace(solution, delay=seen.seconds + rest.seconds, delay_sigma=rest.sigma), chosen


def _all_parameters(
    body: RigidBody, names: Sequence[str], observations: Sequence[Observation], options: InverseDynamicsOptions
) -> tuple[Estimate, list[str]]:
    """Dead zone and friction chosen, and all parameters estimated."""
    friction = friction_of_options(names, observations, options)
    notes = list(coupled_choices(friction, options))
    usable, sentence = moving_rows(TorqueModel(body, friction), observations, options)
    notes.append(sentence)
    if options.law == LOAD_VELOCITY.name and options.stribeck_velocity is None:
        friction, sentence = search_stribeck_velocity(body, friction, observations, usable, options.solver)
        notes.append(sentence)
    return estimate(TorqueModel(body, friction), observations, usable, options.solver), notes


def _parameters(solution: Estimate) -> ParameterTable:
    """All parameters of the fit, rigid-body ones with the values of the URDF."""
    model = solution.model
    reference = np.append(np.full(model.friction_count, np.nan), model.body.reference)
    return ParameterTable(
        solution.names,
        solution.fit.problem.units,
        solution.fit.values,
        np.sqrt(np.diagonal(solution.fit.covariance)),
        reference[solution.kept],
    )
