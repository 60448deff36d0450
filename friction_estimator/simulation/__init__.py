"""MuJoCo biped from the robot's own URDF: walk, sensors, injected friction."""

from friction_estimator.simulation.controller import ControllerGains
from friction_estimator.simulation.footsteps import Gait, Ground
from friction_estimator.simulation.friction import TABLE_I, FrictionSetting, ParametrisedLaw
from friction_estimator.simulation.scenario import Push, Scenario, make_scenario, scenario_names
from friction_estimator.simulation.sensors import NoiseLevel, make_noise, noise_names
from friction_estimator.simulation.simulator import PERIOD_NS, Reference, SimulationSample, Simulator

__all__ = [
    "PERIOD_NS",
    "TABLE_I",
    "ControllerGains",
    "FrictionSetting",
    "Gait",
    "Ground",
    "ParametrisedLaw",
    "NoiseLevel",
    "Push",
    "Reference",
    "Scenario",
    "SimulationSample",
    "Simulator",
    "make_noise",
    "make_scenario",
    "noise_names",
    "scenario_names",
]
