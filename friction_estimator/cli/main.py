"""The command line: a verb is a module that is imported only when it is used.

The verb ``fleet`` is the module ``fleet`` of this folder, with ``run(arguments) -> int | None`` and, where it has
options, ``add_arguments(parser)``, and a line in :data:`VERBS`. Exit codes: 0 done, 1 the work failed (one line on
stderr has the reason), 2 wrong usage; a verb may return another one.
"""

from __future__ import annotations

import argparse
import os
import shlex
import signal
import sys
from collections.abc import Sequence
from typing import Any

import friction_estimator
from friction_estimator.errors import FrictionEstimatorError, missing_package
from friction_estimator.ros.executables import import_module, on_end_signals, open_standard_streams

VERBS = {
    "demo": "the biped walks in simulation, the estimator runs live over ROS 2; leaves a bag and a report",
    "simulate": "write a bag of the walking biped, with ground truth",
    "replay": "run the estimator over a bag",
    "init": "write the YAML of a new robot: feet, IMU and topics guessed from its URDF and a bag",
    "plan": "plan a motion that shows friction and inertia of an arm, to move along while recording",
    "identify": "identify friction, inertia and drive parameters from recordings, with error bars",
    "validate": "apply an identification to other recordings: errors compared with zero and the rigid body alone",
    "export": "write identified friction into the files of simulators, controllers and firmware",
    "report": "one HTML page of a bag with estimates, or of an identification",
    "fleet": "replay the bags of many robots on Dask into one table, and show which joints wear",
    "train": "train MOB-Net, the networks that learn the error of the momentum observer",
    "evaluate": "errors of the external torque of MOB-Net and of the momentum observer alone, on other data",
    "collisions": "learn thresholds of normal walking from bags, or detect collisions in bags with them",
    "view": "show the topics of a running estimator in a browser, in Rerun or in Foxglove",
    "benchmark": "what an estimate costs on this computer, and whether it holds the rate of the joint states",
    "parameters": "list every parameter of the YAML with default, unit and range",
    "compile": "compile the numerical kernels now, so that nothing has to wait for it later",
}
"""What each verb does."""
_COMPLETION = "_ARGCOMPLETE"
"""Variable that argcomplete sets when the shell wants to complete a line."""


class _HelpFormatter(argparse.ArgumentDefaultsHelpFormatter):
    """Shows the default of an option where it has one."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        return action.help if action.default in (None, False, "", []) else super()._get_help_string(action)


def add_command(commands: Any, name: str, text: str) -> argparse.ArgumentParser:
    """Add the parser of a verb, or of an action of a verb, with its help text."""
    description = f"{text[0].upper()}{text[1:]}."
    made: argparse.ArgumentParser = commands.add_parser(
        name, help=text, description=description, formatter_class=_HelpFormatter
    )
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb; return the exit code."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # before numpy: on small matrices threads only cost time
    if arguments is None:  # a whole process: a signal to end interrupts it, so that files and children end well
        open_standard_streams()
        on_end_signals(signal.default_int_handler)
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        parser = _parser(words)
        if not words:
            parser.print_help(sys.stderr)
            parser.exit(2)
        parsed = parser.parse_args(words)
        code: int | None = parsed.run(parsed)
        sys.stdout.flush()
    except FrictionEstimatorError as error:
        return _fail(str(error))
    except ModuleNotFoundError as error:
        return _fail(missing_package(error))
    except BrokenPipeError:  # the reader of our output has gone, as in `... | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        return _fail(str(error))
    except KeyboardInterrupt:
        return _fail("interrupted")
    return code or 0


def _parser(words: Sequence[str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="friction_estimator", description="Joint friction of walking robots: live, from bags, in reports."
    )
    parser.add_argument("--version", action="version", version=f"friction_estimator {friction_estimator.__version__}")
    verbs = parser.add_subparsers(metavar="VERB", required=True, dest="verb")
    typed = shlex.split(os.environ.get("COMP_LINE", ""))[1:] if _COMPLETION in os.environ else words
    chosen = next((word for word in typed if not word.startswith("-")), None)
    for name, description in VERBS.items():
        verb = add_command(verbs, name, description)
        if name == chosen:
            module = import_module(f"friction_estimator.cli.{name}")
            if hasattr(module, "add_arguments"):
                module.add_arguments(verb)
            verb.set_defaults(run=module.run, command=shlex.join(("friction_estimator", *words)))
    if _COMPLETION in os.environ:  # the shell wants to complete a line
        import argcomplete

        argcomplete.autocomplete(parser)
    return parser


def _fail(reason: str) -> int:
    print(f"friction_estimator: error: {reason}", file=sys.stderr)
    return 1
