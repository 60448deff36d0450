"""Joint friction of walking robots and arms: estimated live, from recordings, and from simulations.

Walk in simulation and estimate the friction of every joint::

    import friction_estimator as fe

    walk = fe.simulate("suralp", duration=10.0)
    result = fe.replay(walk)
    for joint, friction, sigma in zip(result.joint_names, result.friction[-1], result.sigma[-1]):
        print(f"{joint:14} {friction:+.3f} +- {sigma:.3f} N m")

==========================================================  ==========================================================
:func:`load_robot`                                          a robot by name, YAML or URDF
:class:`Estimator`                                          the live estimator: samples in, estimates out
:class:`JointSample`, :class:`ImuSample`, :class:`WrenchSample`, :class:`FrictionEstimate`    what it takes and gives
:func:`simulate`                                            a biped walks in MuJoCo, with sensors and ground truth
:func:`replay`                                              the estimator over a rosbag2 or a simulation
:func:`load_recording`                                      joint signals of a rosbag2, .csv or .npz
:func:`plan_excitation`                                     a motion that shows the friction and inertia of an arm
:func:`identify`                                            friction, inertia and drive parameters from recordings
:func:`load_identification`                                 the result of an earlier identification
:func:`export`                                              identified friction for URDF, MJCF, ros2_control, C
:func:`report`                                              an HTML page of a bag or of an identification
:class:`FrictionEstimatorError`                             the base class of all errors
==========================================================  ==========================================================

Arrays go in and come out, in SI units and in the order of ``joint_names``. A name is imported when it is first used, so
that ``import friction_estimator`` costs nothing, and nothing needs a library that it does not use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from friction_estimator.api.identify import identify
    from friction_estimator.api.plan import plan_excitation
    from friction_estimator.api.recordings import load_recording
    from friction_estimator.api.replay import replay
    from friction_estimator.api.report import report
    from friction_estimator.api.simulate import simulate
    from friction_estimator.api.validate import validate
    from friction_estimator.errors import FrictionEstimatorError
    from friction_estimator.estimation.estimator import Estimator
    from friction_estimator.identification.joint_log import JointLog, Payload
    from friction_estimator.io.robot import load_robot
    from friction_estimator.types import FrictionEstimate, ImuSample, JointSample, WrenchSample

__version__ = "0.1.0"
__all__ = [
    "Estimator",
    "FrictionEstimate",
    "FrictionEstimatorError",
    "ImuSample",
    "JointLog",
    "JointSample",
    "Payload",
    "WrenchSample",
    "identify",
    "load_recording",
    "load_robot",
    "plan_excitation",
    "replay",
    "report",
    "simulate",
    "validate",
]

_MODULES = {
    "Estimator": "estimation.estimator",
    "FrictionEstimate": "types",
    "FrictionEstimatorError": "errors",
    "ImuSample": "types",
    "JointLog": "identification.joint_log",
    "JointSample": "types",
    "Payload": "identification.joint_log",
    "WrenchSample": "types",
    "identify": "api.identify",
    "load_recording": "api.recordings",
    "load_robot": "io.robot",
    "plan_excitation": "api.plan",
    "replay": "api.replay",
    "report": "api.report",
    "simulate": "api.simulate",
    "validate": "api.validate",
}
"""Module of this package that defines each public name."""


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
