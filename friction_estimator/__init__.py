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
:mod:`fleet`                   many bags of many robots on Dask, and friction over months
=============================  =========================================================================

The estimator takes :class:`JointSample`, :class:`ImuSample` and :class:`WrenchSample`, for friction compensation also
:class:`CommandSample`, and gives :class:`FrictionEstimate`. A recording is a :class:`JointLog`, which may carry a
:class:`Payload`. All errors are :class:`FrictionEstimatorError`.

Arrays go in and come out, in SI units and in the order of ``joint_names``. A name is imported when it is first used, so
that ``import friction_estimator`` costs nothing, and nothing needs a library that it does not use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from friction_estimator.api.check_motion import check_motion
    from friction_estimator.api.experiments import load_recording
    from friction_estimator.api.identify import identify, load_identification
    from friction_estimator.api.outputs import export, report
    from friction_estimator.api.plan import plan_excitation
    from friction_estimator.api.replay import replay
    from friction_estimator.api.simulate import example, simulate
    from friction_estimator.api.validate import validate
    from friction_estimator.control import SafeCompensation
    from friction_estimator.errors import FrictionEstimatorError
    from friction_estimator.estimation.estimator import Estimator
    from friction_estimator.identification.joint_log import JointLog, Payload
    from friction_estimator.io.robot import load_robot
    from friction_estimator.types import CommandSample, FrictionEstimate, ImuSample, JointSample, WrenchSample

__version__ = "0.2.0"
__all__ = [
    "CommandSample",
    "Estimator",
    "FrictionEstimate",
    "FrictionEstimatorError",
    "ImuSample",
    "JointLog",
    "JointSample",
    "Payload",
    "SafeCompensation",
    "WrenchSample",
    "check_motion",
    "example",
    "export",
    "identify",
    "load_identification",
    "load_recording",
    "load_robot",
    "plan_excitation",
    "replay",
    "report",
    "simulate",
    "validate",
]

_MODULES = {
    "CommandSample": "types",
    "Estimator": "estimation.estimator",
    "FrictionEstimate": "types",
    "FrictionEstimatorError": "errors",
    "ImuSample": "types",
    "JointLog": "identification.joint_log",
    "JointSample": "types",
    "Payload": "identification.joint_log",
    "SafeCompensation": "control",
    "WrenchSample": "types",
    "check_motion": "api.check_motion",
    "example": "api.simulate",
    "export": "api.outputs",
    "identify": "api.identify",
    "load_identification": "api.identify",
    "load_recording": "api.experiments",
    "load_robot": "io.robot",
    "plan_excitation": "api.plan",
    "replay": "api.replay",
    "report": "api.outputs",
    "simulate": "api.simulate",
    "validate": "api.validate",
}
"""Module of this package that defines each public name."""


def __getattr__(name: str) -> Any:
    if name == "fleet":
        return import_module(f"{__name__}.fleet")
    if name not in _MODULES:
        raise AttributeError(
            f"module {__name__!r} has no attribute {name!r}; its public names are {', '.join(__all__)}"
        )
    value = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "fleet"})
