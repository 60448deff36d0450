"""An identification by real least squares of a robot whose friction is known."""

from __future__ import annotations

import numpy as np

from friction_estimator.identification.result import (
    FrictionSamples,
    Identification,
    JointScore,
    ParameterTable,
    Provenance,
)
from friction_estimator.laws import make_law
from friction_estimator.laws.identified import IdentifiedParameters, parameters_sigma

TRUTH = {
    "hip": ("load_quadrants", (3.0, 0.06, 2.4, 0.11, 4.0, 0.3)),
    "knee": ("asymmetric_stribeck", (1.5, 2.0, 2.6, 2.2)),
    "ankle": ("coulomb_viscous", (0.8, 1.1)),
}
NOISE = 0.05
STANDSTILL = 0.02
DRIVE_INERTIA = 0.045


def make_identification(joint_names: tuple[str, ...] = tuple(TRUTH)) -> Identification:
    """Friction of the joints, each with the law and truth of a row of :data:`TRUTH`, taken in turn."""
    random = np.random.default_rng(11)
    rows = [list(TRUTH.values())[row % len(TRUTH)] for row in range(len(joint_names))]
    n, p = len(rows), max(len(values) for _, values in rows)
    values, covariance = np.zeros((n, p)), np.zeros((n, p, p))
    samples, scores, variance = [], [], np.zeros(n)
    for row, (law_name, truth) in enumerate(rows):
        chi, sigma, seen, score = _fit(random, joint_names[row], law_name, np.array(truth))
        values[row, : chi.size], covariance[row, : chi.size, : chi.size] = chi, sigma
        variance[row] = score.fit_error**2
        samples.append(seen)
        scores.append(score)
    laws = tuple(law for law, _ in rows)
    friction = IdentifiedParameters(
        joint_names, laws, values, covariance, variance, np.full(n, NOISE**2), np.array([s.used.sum() for s in samples])
    )
    return Identification(
        friction=friction,
        parameters=_table(friction, [truth for _, truth in rows]),
        scores=tuple(scores),
        samples=tuple(samples),
        condition=41.5,
        verdicts=("knee: 'static_positive' rests on few slow samples.", "The model predicts held-out segments."),
        provenance=Provenance(
            command="friction_estimator identify run_1.csv run_2.csv -o friction.yaml",
            method="inverse_dynamics",
            data=(("run_1.csv", "ab" * 32), ("run_2.csv", "cd" * 32)),
            choices=("Low-pass at 12 Hz: 99 % of the power of the positions is below.", "Speeds below 0.02 left out."),
        ),
    )


def _fit(
    random: np.random.Generator, joint: str, law_name: str, truth: np.ndarray
) -> tuple[np.ndarray, np.ndarray, FrictionSamples, JointScore]:
    """Parameters, covariance, samples and score: least squares on the first half, score on the second."""
    law, time = make_law(law_name), np.arange(0.0, 20.0, 0.01)
    velocity = 0.9 * np.sin(1.3 * time + random.uniform(0.0, 6.0)) + 0.4 * np.sin(3.1 * time)
    load = 25.0 * np.sin(0.7 * time + random.uniform(0.0, 6.0)) + 5.0
    phi = law.regressor(velocity, load)
    friction = phi @ truth + random.normal(scale=NOISE, size=time.size)
    used, first = np.abs(velocity) > STANDSTILL, time < 10.0
    chi, *_ = np.linalg.lstsq(phi[used & first], friction[used & first], rcond=None)
    residual = friction - phi @ chi
    error = float(np.std(residual[used & first]))
    covariance = error**2 * np.linalg.inv(phi[used & first].T @ phi[used & first])
    sigma = np.sqrt(np.einsum("ki,ij,kj->k", phi, covariance, phi))
    thin = slice(None, None, 4)
    seen = FrictionSamples(
        joint, velocity[thin], friction[thin], load[thin], (phi @ chi)[thin], sigma[thin], used[thin]
    )
    torque = friction + load
    rms = lambda one: float(np.sqrt(np.mean(one[used & ~first] ** 2)))  # noqa: E731
    score = JointScore(joint, rms(torque), rms(friction), rms(residual), error, int((used & ~first).sum()))
    return chi, covariance, seen, score


def _table(friction: IdentifiedParameters, truths: list[tuple[float, ...]]) -> ParameterTable:
    sigma, names, units, values, spread, reference = parameters_sigma(friction), [], [], [], [], []
    for row, (joint, law_name) in enumerate(zip(friction.joint_names, friction.law_names, strict=True)):
        law = make_law(law_name)
        names += [f"{joint}/{name}" for name in law.parameter_names]
        units += law.units
        values += friction.values[row, : len(law.units)].tolist()
        spread += sigma[row, : len(law.units)].tolist()
        reference += truths[row]
    names += [f"Ia {friction.joint_names[0]}", "ZZ_3R + 0.4 MX_4", "<b>drive gain</b>"]
    units += ["kg m^2", "kg m^2", "N m/A"]
    columns = [
        values + [DRIVE_INERTIA, 1.3e-17, -0.0],
        spread + [0.004, 0.02, 0.1],
        reference + [0.05, np.nan, np.nan],
    ]
    identifiable = np.array([name != "<b>drive gain</b>" for name in names])
    return ParameterTable(tuple(names), tuple(units), *map(np.array, columns), identifiable)
