"""The result of `identify` as text on stdout."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from rich.console import Console

from friction_estimator.identification.result import Identification
from friction_estimator.laws import linear_law_names
from friction_estimator.report.identification_tables import parameter_table, score_table
from friction_estimator.tables import number, terminal_table

_WIDTH = 120
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
    console.print(terminal_table(parameter_table(identification.parameters)))
    console.print(terminal_table(score_table(identification.scores)))
    condition = number(identification.condition, digits=4)
    console.print(f"condition number of the observation matrix, columns of unit norm: {condition}")
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
