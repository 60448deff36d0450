"""Prints Tables I-IV beside the printed ones, as Markdown, for two true joints."""

from __future__ import annotations

import argparse

import numpy as np

from benchmarks.hamon.models import CUTOFF_HZ, Compared, compare
from benchmarks.hamon.printed import MODELS, TABLE_I, TABLE_II, TABLE_III, TABLE_IV
from benchmarks.hamon.rx130l import PAYLOADS, Sensors, record
from benchmarks.hamon.trajectory import PEAKS, reference_motion
from benchmarks.hamon.truth import AS_PRINTED, Truth, shared_factors
from friction_estimator.identification.recording.zero_phase import to_motion

TRUTHS = {"as printed": AS_PRINTED, "shared factors": shared_factors()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--slowest", type=float, default=PEAKS[0], help="peak velocities below are left out [rad/s]")
    arguments = parser.parse_args()
    for name, truth in TRUTHS.items():
        _study(name, truth, arguments.slowest)
    return 0


def _study(name: str, truth: Truth, slowest: float) -> None:
    motion = reference_motion(slowest)
    logs = [record(truth, Sensors(), mass, seed, motion) for seed, mass in enumerate(PAYLOADS)]
    motions = [to_motion(log, CUTOFF_HZ) for log in logs]
    models, errors = compare(motions, True)
    _, alone = compare(motions[:1], False)
    print(f"\n## True joint: products {name}\n")
    _parameters(models)
    _table_iii(errors)
    _table_iv(errors, alone)


def _parameters(models: list[Compared]) -> None:
    print("| model | parameter | value | printed | sigma | sigma by eq. 15 | printed |\n|---|---|---|---|---|---|---|")
    for model in models:
        sigmas = np.sqrt(np.diagonal(model.fit.covariance)), np.sqrt(np.diagonal(model.fit.white_covariance))
        table = {MODELS[0]: TABLE_I, MODELS[1]: TABLE_II}.get(model.name, {})
        for name, value, honest, white in zip(model.fit.problem.names, model.fit.values, *sigmas, strict=True):
            there, percent = table.get(name, (np.nan, np.nan))
            printed = (f"{there:.3f}", f"{there * percent / 100.0:.4f}") if name in table else ("", "")
            print(f"| {model.name} | {name} | {value:.3f} | {printed[0]} | {honest:.3f} | {white:.4f} | {printed[1]} |")


def _table_iii(errors: dict[str, list[float]]) -> None:
    print("\n| Table III, relative norm of errors | all | slow | fast | all, held out |\n|---|---|---|---|---|")
    for name, values in errors.items():
        beside = [f" (print {value:.4f})" for value in TABLE_III.get(name, ())]
        beside += [""] * (len(values) - len(beside))
        print(f"| {name} | " + " | ".join(f"{v:.4f}{b}" for v, b in zip(values, beside, strict=True)) + " |")
    old, new = (errors[name] for name in MODELS)
    printed = [f" (print {b / a:.2f})" for a, b in zip(*(TABLE_III[name] for name in MODELS), strict=True)]
    ratios = [f"{b / a:.2f}{p}" for a, b, p in zip(old, new, [*printed, ""], strict=True)]
    print(f"| ratio | {' | '.join(ratios)} |")


def _table_iv(errors: dict[str, list[float]], alone: dict[str, list[float]]) -> None:
    print("\n| Table IV | with payloads | without payload | without, held out |\n|---|---|---|---|")
    for name in errors:
        beside = f" (print {TABLE_IV[name]:.4f})" if name in TABLE_IV else ""
        print(f"| {name} | {errors[name][0]:.4f} | {alone[name][0]:.4f}{beside} | {alone[name][3]:.4f} |")
    ratios = [alone[MODELS[1]][k] / alone[MODELS[0]][k] for k in (0, 3)]
    printed = TABLE_IV[MODELS[1]] / TABLE_IV[MODELS[0]]
    print(f"| ratio | | {ratios[0]:.2f} (print {printed:.2f}) | {ratios[1]:.2f} |")
