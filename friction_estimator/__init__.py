"""Joint friction of walking robots and arms: estimated live, from recordings, and from simulations.

Walk in simulation and estimate the friction of every joint::

    import friction_estimator as fe

    walk = fe.simulate("suralp", duration=10.0)
    result = fe.replay(walk)
    for joint, friction, sigma in zip(result.joint_names, result.friction[-1], result.sigma[-1]):
        print(f"{joint:14} {friction:+.3f} +- {sigma:.3f} N m")

=============================  =========================================================================
:func:`load_robot`             a robot by name, YAML or URDF
:class:`Estimator`             the live estimator: samples in, estimates out
:func:`simulate`               a biped walks in MuJoCo, with sensors and ground truth
:func:`replay`                 the estimator over a rosbag2 or a simulation
:func:`load_recording`         joint signals of a rosbag2, .csv or .npz
:func:`example`                a simulated recording to try the package with
:func:`plan_excitation`        a motion that shows friction and inertia of an arm
:func:`check_motion`           which parameters a motion shows, by simulated recordings of it
:func:`identify`               friction, inertia and drive parameters from recordings
:func:`load_identification`    the result of an earlier identification
:func:`validate`               an identification applied to other recordings
:func:`export`                 identified friction in the files of simulators, controllers and firmware
:func:`report`                 an HTML page of a bag or of an identification
:class:`SafeCompensation`      the controller's side of friction compensation: a torque that ends with its source
:func:`replay_fleet`           the bags of many robots on Dask, and the joints that wear
=============================  =========================================================================

The estimator takes :class:`JointSample`, :class:`ImuSample` and :class:`WrenchSample`, for friction compensation also
:class:`CommandSample`, and gives :class:`FrictionEstimate`. A recording is a :class:`JointLog`, which may carry a
:class:`Payload`. A friction law of your own is a :class:`LinearFrictionLaw` with a :class:`Term` per parameter, of
a :class:`Shape` and a :class:`Side`; :func:`register_law` adds it. All errors are :class:`FrictionEstimatorError`.

Arrays go in and come out, in SI units and in the order of ``joint_names``. A name is imported when it is first used, so
that ``import friction_estimator`` costs nothing, and nothing needs a library that it does not use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from friction_estimator.api.check_motion import check_motion as check_motion
    from friction_estimator.api.experiments import load_recording as load_recording
    from friction_estimator.api.identify import identify as identify
    from friction_estimator.api.identify import load_identification as load_identification
    from friction_estimator.api.outputs import export as export
    from friction_estimator.api.outputs import report as report
    from friction_estimator.api.plan import plan_excitation as plan_excitation
    from friction_estimator.api.replay import replay as replay
    from friction_estimator.api.simulate import example as example
    from friction_estimator.api.simulate import simulate as simulate
    from friction_estimator.api.validate import validate as validate
    from friction_estimator.control import SafeCompensation as SafeCompensation
    from friction_estimator.errors import FrictionEstimatorError as FrictionEstimatorError
    from friction_estimator.estimation.estimator import Estimator as Estimator
    from friction_estimator.fleet.run import replay_fleet as replay_fleet
    from friction_estimator.identification.joint_log import JointLog as JointLog
    from friction_estimator.identification.joint_log import Payload as Payload
    from friction_estimator.io.robot import load_robot as load_robot
    from friction_estimator.laws.law import register_law as register_law
    from friction_estimator.laws.linear import LinearFrictionLaw as LinearFrictionLaw
    from friction_estimator.laws.linear import Shape as Shape
    from friction_estimator.laws.linear import Side as Side
    from friction_estimator.laws.linear import Term as Term
    from friction_estimator.types import CommandSample as CommandSample
    from friction_estimator.types import FrictionEstimate as FrictionEstimate
    from friction_estimator.types import ImuSample as ImuSample
    from friction_estimator.types import JointSample as JointSample
    from friction_estimator.types import WrenchSample as WrenchSample

__version__ = "0.2.0"
_MODULES = {
    "CommandSample": "types",
    "Estimator": "estimation.estimator",
    "FrictionEstimate": "types",
    "FrictionEstimatorError": "errors",
    "ImuSample": "types",
    "JointLog": "identification.joint_log",
    "JointSample": "types",
    "LinearFrictionLaw": "laws.linear",
    "Payload": "identification.joint_log",
    "SafeCompensation": "control",
    "Shape": "laws.linear",
    "Side": "laws.linear",
    "Term": "laws.linear",
    "WrenchSample": "types",
    "check_motion": "api.check_motion",
    "example": "api.simulate",
    "export": "api.outputs",
    "identify": "api.identify",
    "load_identification": "api.identify",
    "load_recording": "api.experiments",
    "load_robot": "io.robot",
    "plan_excitation": "api.plan",
    "register_law": "laws.law",
    "replay": "api.replay",
    "replay_fleet": "fleet.run",
    "report": "api.outputs",
    "simulate": "api.simulate",
    "validate": "api.validate",
}
"""Module of this package that defines each public name."""
__all__ = list(_MODULES)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(
            f"module {__name__!r} has no attribute {name!r}; its public names are {', '.join(__all__)}"
        )
    value = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
