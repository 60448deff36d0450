"""Prints Tables I-IV beside the printed ones, as Markdown."""

from __future__ import annotations

import argparse
import sys

import numpy as np

from benchmarks.hamon.models import Compared, compare
from benchmarks.hamon.rx130l import PAYLOADS, Sensors, Truth, record
from friction_estimator.identification.recording.zero_phase import to_motion

LOW, HIGH = 0.12, 0.42
"""Slow and fast samples: 10 % and 35 % of the largest velocity, 1.2 rad/s."""
PRINTED_III = {"usual": (0.0733, 0.0737, 0.0863), "new, as printed": (0.0484, 0.0401, 0.0881)}
PRINTED_IV = {"usual": 0.0742, "new, as printed": 0.0598}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--duration", type=float, default=100.0, help="of every experiment at the least [s]")
    arguments = parser.parse_args()
    logs = [record(Truth(), Sensors(), mass, seed, arguments.duration) for seed, mass in enumerate(PAYLOADS)]
    motions = [to_motion(log) for log in logs]
    everything, speed, torque = compare(motions, True)
    alone, speed_alone, torque_alone = compare(motions[:1], False)
    _parameters(everything)
    errors = {model.name: model.errors(speed, torque, LOW, HIGH) for model in everything}
    errors_alone = {model.name: model.errors(speed_alone, torque_alone, LOW, HIGH) for model in alone}
    _table_iii(errors)
    _table_iv(errors, errors_alone)
    return 0


def _parameters(models: list[Compared]) -> None:
    print("| model | parameter | value | sigma | sigma as printed (eq. 15) |\n|---|---|---|---|---|")
    for model in models:
        sigmas = np.sqrt(np.diagonal(model.fit.covariance)), np.sqrt(np.diagonal(model.fit.white_covariance))
        for name, value, honest, white in zip(model.fit.problem.names, model.fit.values, *sigmas, strict=True):
            print(f"| {model.name} | {name} | {value:.3f} | {honest:.3f} | {white:.3f} |")


def _table_iii(errors: dict[str, list[float]]) -> None:
    print("\n| Table III, relative norm of errors | all | slow | fast | all, held out |\n|---|---|---|---|---|")
    for name, values in errors.items():
        printed = PRINTED_III.get(name)
        beside = [f" (print {value:.4f})" for value in printed] if printed else [""] * 3
        print(f"| {name} | " + " | ".join(f"{v:.4f}{b}" for v, b in zip(values, [*beside, ""], strict=True)) + " |")
    old, new = errors["usual"], errors["new, as printed"]
    printed = [f"{b / a:.2f}" for a, b in zip(*PRINTED_III.values(), strict=True)]
    ratios = [f"{b / a:.2f} (print {p})" for a, b, p in zip(old, new, printed, strict=False)]
    print(f"| ratio | {' | '.join(ratios)} | {new[3] / old[3]:.2f} |")


def _table_iv(errors: dict[str, list[float]], alone: dict[str, list[float]]) -> None:
    print("\n| Table IV | with payloads | without payload | without, held out |\n|---|---|---|---|")
    for name in errors:
        beside = f" (print {PRINTED_IV[name]:.4f})" if name in PRINTED_IV else ""
        print(f"| {name} | {errors[name][0]:.4f} | {alone[name][0]:.4f}{beside} | {alone[name][3]:.4f} |")
    ratio = alone["new, as printed"][0] / alone["usual"][0]
    printed = PRINTED_IV["new, as printed"] / PRINTED_IV["usual"]
    print(f"| ratio | | {ratio:.2f} (print {printed:.2f}) | |")


if __name__ == "__main__":
    sys.exit(main())
