"""The result of `identify` as text on stdout."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from friction_estimator.identification.result import Identification, JointScore, ParameterTable
from friction_estimator.laws import linear_law_names

SIGNIFICANT = 2.0
"""Standard deviations from zero at which a parameter counts as seen."""

_WIDTH = 120
_VAGUE = 1e-3  # of sigma: a value nearer to zero has no relative error worth telling
_COPY = "a copy of this file (parameters_file: it also writes there at its end)"


def print_identification(identification: Identification, coupled: Sequence[str] = ()) -> None:
    """Choices, parameters with error bars, held-out scores beside the baselines, verdicts.

    Parameters
    ----------
    coupled : motors that move several joints, where the robot's YAML did not name them itself
    """
    console = Console(highlight=False, width=None if sys.stdout.isatty() else _WIDTH)
    console.print("what was chosen, and why", style="bold")
    for text in identification.provenance.choices:
        console.print(f"- {text}", markup=False, soft_wrap=True)
    console.print()
    console.print(parameter_table(identification.parameters))
    console.print(score_table(identification.scores))
    console.print(f"condition number of the observation matrix, columns of unit norm: {identification.condition:.4g}")
    console.print()
    console.print("verdict", style="bold")
    for text in (*identification.verdicts, _next_step(identification.friction.law_names), *_motors_in_yaml(coupled)):
        console.print(f"- {text}", markup=False, soft_wrap=True)


def _next_step(law_names: tuple[str, ...]) -> str:
    """How the live node starts from the file."""
    nonlinear = sorted(set(law_names) - set(linear_law_names()))
    if nonlinear:
        others = sorted(set(law_names) - set(nonlinear))
        told = f"; for the other joints identifier.joint_laws must name {', '.join(others)}" if others else ""
        curves = f"the curve of {', '.join(nonlinear)} in the linear law that it has for the joint"
        return f"the live node starts from {_COPY} and says {curves}{told}"
    common = max(sorted(set(law_names)), key=law_names.count)
    told = " and identifier.joint_laws for the others" if set(law_names) != {common} else ""
    return f"the live node starts from {_COPY} with identifier.law: {common}{told}"


def _motors_in_yaml(coupled: Sequence[str]) -> tuple[str, ...]:
    """What the live node must know to use the friction of motors."""
    if not coupled:
        return ()
    return (
        f"the friction of {', '.join(coupled)} counts where the robot's YAML has the same coupling: robot.coupling "
        "with joints, motors and matrix; without it these joints start anew",
    )


def parameter_table(parameters: ParameterTable) -> Table:
    """Every parameter with its standard deviation, and whether it can be told from zero."""
    reference = parameters.reference
    known = reference is not None and bool(np.isfinite(reference).any())
    table = Table(title="parameters", title_justify="left", box=SIMPLE_HEAD)
    table.add_column("parameter", overflow="fold")
    for heading in ("value", "± sigma", "unit", "sigma %", "seen", *(("known before", "apart") if known else ())):
        table.add_column(heading, justify="left" if heading in ("unit", "seen") else "right", no_wrap=True)
    shown = parameters.identifiable
    rows = zip(parameters.names, parameters.units, parameters.values, parameters.sigma, strict=True)
    for row, (name, unit, value, sigma) in enumerate(rows):
        seen = abs(value) > SIGNIFICANT * sigma and (shown is None or bool(shown[row]))
        cells = [_number(value, sigma), _number(sigma, sigma), unit, _percent(sigma, value), "yes" if seen else "no"]
        if known and reference is not None:
            before = float(reference[row])
            apart = abs(value - before) / sigma if sigma > 0.0 else math.nan
            cells += [_number(before, sigma), f"{apart:.1f} sigma" if math.isfinite(apart) else ""]
        table.add_row(_plain(name), *cells)
    return table


def score_table(scores: tuple[JointScore, ...]) -> Table:
    """RMS errors of every joint's torque; what "predict zero" errs is the torque itself."""
    table = Table(title="torque error, RMS [N m], held-out segments", title_justify="left", box=SIMPLE_HEAD)
    table.add_column("joint", overflow="fold")
    for heading in ("predict zero", "rigid body only", "whole model", "in % of torque", "data of the fit", "samples"):
        table.add_column(heading, justify="right", no_wrap=True)
    for score in scores:
        table.add_row(
            _plain(score.joint),
            _short(score.torque_rms),
            _short(score.rigid_body_error),
            _short(score.model_error),
            f"{100.0 * score.relative_error:.1f}" if math.isfinite(score.relative_error) else "",
            _short(score.fit_error),
            str(score.samples),
        )
    return table


def _plain(text: str) -> str:
    return text.replace("[", r"\[")  # not the markup of rich


def _number(value: float, sigma: float) -> str:
    """A value with two digits of its standard deviation."""
    if not math.isfinite(value):
        return ""
    if not (math.isfinite(sigma) and sigma > 0.0):
        return f"{value:.4g}"
    digits = 1 - math.floor(math.log10(sigma))
    return f"{value:.{digits}f}" if 0 <= digits <= 6 else f"{value:.3g}"


def _short(value: float) -> str:
    return f"{value:.4g}" if math.isfinite(value) else "-"


def _percent(sigma: float, value: float) -> str:
    return f"{100.0 * sigma / abs(value):.1f}" if abs(value) > _VAGUE * sigma else ""
