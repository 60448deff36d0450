"""Which options of `identify` belong to what: one that is of no use is refused, not overlooked."""

from __future__ import annotations

import argparse

from friction_estimator.errors import ConfigError

METHODS = ("inverse_dynamics", "friction_curve", "motor")
PLAN = "--plan"
"""Planning a motion, beside the methods that identify from one."""

_USED_BY = {
    **dict.fromkeys(
        ("output", "report", "namespace", "method", "law", "coupling", "cutoff", "robust", "folds"), METHODS
    ),
    **dict.fromkeys(("filter", "dead_zone"), ("inverse_dynamics", "friction_curve")),
    **dict.fromkeys(
        ("payload", "payload_scale", "regressors", "parallel_cutoff", "coupled_friction"), ("inverse_dynamics",)
    ),
    **dict.fromkeys(("delay", "max_sigma"), ("friction_curve",)),
    **dict.fromkeys(("inertia", "identify_inertia", "zero_slope", "offset", "drive", "known_gain"), ("motor",)),
    "stribeck_velocity": ("inverse_dynamics", "motor"),
    "known_inertia": ("inverse_dynamics", PLAN),
    **dict.fromkeys(("duration", "bandwidth", "harmonics", "criterion", "starts", "seed", "margin"), (PLAN,)),
    **dict.fromkeys(("max_velocity", "max_acceleration", "topic", "overwrite"), (PLAN,)),
}
"""Options by the name of their value; those that everything takes are not among them."""


def refuse_useless(arguments: argparse.Namespace, purpose: str) -> None:
    """Refuse options that a method, or planning, has no use for.

    Parameters
    ----------
    arguments : with ``default_of``, what an option is when it was not given
    purpose : one of ``METHODS``, or ``PLAN``

    Raises
    ------
    ConfigError
        When there is one.
    """
    for option, users in _USED_BY.items():
        value = getattr(arguments, option)
        if purpose not in users and value != arguments.default_of(option):
            name = f"{'no-' if value is False else ''}{option.replace('_', '-')}"
            raise ConfigError(f"--{name} is for {_in_words(users)}, not for {purpose}")


def _in_words(users: tuple[str, ...]) -> str:
    if users == METHODS:
        return "identifying"
    methods = " and ".join(user for user in users if user != PLAN)
    planning = [PLAN] * (PLAN in users)
    return " and ".join(([f"the method {methods}"] if methods else []) + planning)
