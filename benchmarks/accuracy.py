"""How well is friction estimated? Every observer on every sensor level, on the built-in walk.

    python benchmarks/accuracy.py [--duration 22] [--seeds 2] [-o docs/accuracy.md]

Root mean square error [N m] per joint, both legs together, after 6 s of walking; stance and swing as the estimator
sees them. The sensors' datasheet of each level is what the estimator is told.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from friction_estimator.core.config import Config
from friction_estimator.core.estimator import Estimator
from friction_estimator.core.observers.fbse import FootBaseSensorEstimation
from friction_estimator.core.robot_model import RobotModel
from friction_estimator.core.types import Attitude, ContactPhase, FloatArray, FrictionEstimate, SensorFrame
from friction_estimator.files.robot import Robot, load_robot
from friction_estimator.report.metrics import joint_errors, root_mean_square
from friction_estimator.simulation import SimulationSample, Simulator, make_noise, make_scenario

PERIOD = 1e-3
JOINTS = ("hip yaw", "hip roll", "hip pitch", "knee", "ankle pitch", "ankle roll")
SETTLED = 6.0
METHODS = {
    "FBSE as printed": {"observer": "fbse"},
    "FBSE, gyro for the null space": {"observer": "fbse", "fbse.base_angular_acceleration": "gyro"},
    "momentum, K = 30 rad/s": {"observer": "momentum"},
}
PRINTED = {
    "FBSE as printed": (
        "0.14 0.69 0.69 0.41 0.16 0.16",
        "0.09 0.11 0.83 0.93 0.42 0.01",
    ),
    "momentum, K = 30 rad/s": (
        "0.19 0.48 0.51 0.25 0.06 0.04",
        "0.12 0.52 0.67 0.67 0.32 0.04",
    ),
}


@dataclass(frozen=True)
class Run:
    """Estimates and truth of one walk, one row a millisecond."""

    estimates: list[FrictionEstimate]
    samples: list[SimulationSample]

    def column(self, name: str) -> FloatArray:
        """One attribute of all estimates."""
        return np.array([getattr(estimate, name) for estimate in self.estimates])

    @property
    def truth(self) -> FloatArray:
        """True friction (m, n)."""
        return np.array([sample.truth.friction for sample in self.samples])

    @property
    def stance(self) -> np.ndarray:
        """Estimated stance of each joint's leg (m, n)."""
        contact = np.array([estimate.phase.contact for estimate in self.estimates])
        return np.repeat(contact, len(JOINTS), axis=1)


def simulate(robot: Robot, noise: str, duration: float, seed: int) -> list[SimulationSample]:
    """Walk."""
    simulator = Simulator(robot.config, robot.urdf_xml, make_scenario("walk", duration), make_noise(noise), seed=seed)
    return [simulator.step() for _ in range(round(duration / PERIOD))]


def estimate(robot: Robot, noise: str, samples: list[SimulationSample], changes: dict) -> Run:
    """Run the estimator over a walk, told the datasheet of the sensors."""
    sensors = dataclasses.asdict(make_noise(noise).datasheet(PERIOD))
    told = {f"sensors.{name}": value for name, value in sensors.items()}
    configured = load_robot("suralp", {**told, **changes})
    estimator = Estimator(configured.config, robot.urdf_xml)
    estimates: list[FrictionEstimate] = []
    for sample in samples:
        estimates += estimator.add_joints(sample.joints)
        estimates += estimator.add_imu(sample.imu)
        for wrench in sample.wrenches:
            estimates += estimator.add_wrench(wrench)
    return Run(estimates + estimator.flush(), samples)


def fold(values: FloatArray) -> FloatArray:
    """(m, 2 * 6) to (2 m, 6): both legs as one."""
    return values.reshape(-1, len(JOINTS))


def errors(runs: list[Run], what: str = "friction") -> tuple[list[FloatArray], list[FloatArray]]:
    """RMSE and NEES per joint, in stance and in swing."""
    first = round(SETTLED / PERIOD)
    parts = [(run.column(what), run.truth, run.column("sigma"), run.stance) for run in runs]
    value, truth, sigma, stance = (np.concatenate([fold(part[k][first:]) for part in parts]) for k in range(4))
    results = [joint_errors(value, truth, sigma, where) for where in (stance, ~stance)]
    return [result.rmse for result in results], [result.nees for result in results]


def row(label: str, *groups: FloatArray | str) -> str:
    """One line of a Markdown table."""
    cells = [group if isinstance(group, str) else " ".join(f"{value:.2f}" for value in group) for group in groups]
    return f"| {label} | " + " | ".join(cells) + " |"


def accuracy_table(robot: Robot, noise: str, duration: float, seeds: int) -> list[str]:
    """The rows of one sensor level."""
    walks = [simulate(robot, noise, duration, seed) for seed in range(seeds)]
    lines = [
        f"## Sensors `{noise}`",
        "",
        "| method | stance RMSE | swing RMSE | stance NEES | swing NEES |",
        "|---|---|---|---|---|",
    ]
    for label, changes in METHODS.items():
        runs = [estimate(robot, noise, walk, changes) for walk in walks]
        rmse, nees = errors(runs)
        lines.append(row(label, *rmse, *nees))
        if label in PRINTED and noise == "paper_std":
            lines.append(row(f"{label}, study before the project", *PRINTED[label], "", ""))
        law, _ = errors(runs, "model")
        lines.append(row(f"{label}: its identified law alone", *law, "", ""))
        print(f"{noise}: {label}: stance {rmse[0].round(3)} swing {rmse[1].round(3)}", file=sys.stderr)
    truth = np.concatenate([fold(run.truth[round(SETTLED / PERIOD) :]) for run in runs])
    stance = np.concatenate([fold(run.stance[round(SETTLED / PERIOD) :]) for run in runs])
    rms = [root_mean_square(np.where(where, truth, np.nan)) for where in (stance, ~stance)]
    lines += [row("the true friction itself (RMS)", *rms, "", ""), "", base_state_line(runs), ""]
    return lines


def base_state_line(runs: list[Run]) -> str:
    """Base state against the truth."""
    late = slice(round(1.0 / PERIOD), None)
    truth = [sample.truth for run in runs for sample in run.samples[late]]
    base = [estimate.base for run in runs for estimate in run.estimates[late]]
    velocity = np.array([b.linear_velocity - t.linear_velocity for b, t in zip(base, truth, strict=True)])
    tilt = np.array(
        [b.rotation_base_to_world[2, :2] - t.rotation_base_to_world[2, :2] for b, t in zip(base, truth, strict=True)]
    )
    drift = [
        np.linalg.norm(run.estimates[-1].base.position_base_in_world - run.samples[-1].truth.position_base_in_world)
        for run in runs
    ]
    return (
        f"Base state: velocity RMSE {1e3 * np.sqrt((velocity**2).mean()):.1f} mm/s a axis, tilt RMSE "
        f"{1e3 * np.sqrt((tilt**2).mean()):.1f} mrad, position off by {1e3 * max(drift):.0f} mm at the end."
    )


def exactness(robot: Robot, duration: float) -> list[str]:
    """Noiseless signals and true states: what each method costs by itself."""
    samples = simulate(robot, "clean", duration, 0)
    lines = [
        "## Exact signals, true states",
        "",
        "Single support, at least 0.15 s after landing and lift-off: error of the standing leg against the truth",
        "(FBSE); all joints at all times: error against the truth low-passed like the observer (momentum).",
        "",
        "| method | RMSE | largest |",
        "|---|---|---|",
    ]
    for label, mode in (("FBSE, minimum norm as printed", "minimum_norm"), ("FBSE, true angular acceleration", "gyro")):
        error = fbse_with_true_states(robot, samples, mode)
        lines.append(row(label, three(root_mean_square(error)), three(np.abs(error).max(axis=0))))
    run = estimate(robot, "clean", samples, {"observer": "momentum"})
    error = fold((run.column("friction") - low_passed(run.truth, 30.0))[round(1.0 / PERIOD) :])
    lines.append(row("momentum, K = 30 rad/s", three(root_mean_square(error)), three(np.abs(error).max(axis=0))))
    return [*lines, ""]


def three(values: FloatArray) -> str:
    """Numbers to the millinewton metre."""
    return " ".join(f"{value:.4f}" for value in values)


def low_passed(signal: FloatArray, gain: float) -> FloatArray:
    """First-order low-pass of the momentum observer (Lim et al. 2024, eq. 11)."""
    decay, result = np.exp(-gain * PERIOD), np.zeros_like(signal)
    for k in range(1, len(signal)):
        result[k] = decay * result[k - 1] + (1.0 - decay) * 0.5 * (signal[k] + signal[k - 1])
    return result


def fbse_with_true_states(robot: Robot, samples: list[SimulationSample], mode: str) -> FloatArray:
    """Errors of the standing leg with attitude and angular acceleration from the simulator."""
    config: Config = load_robot("suralp", {"fbse.base_angular_acceleration": mode}).config
    model = RobotModel(config, robot.urdf_xml)
    observer = FootBaseSensorEstimation(config, model)
    rate = np.array([sample.truth.angular_velocity for sample in samples])
    acceleration = np.diff(rate, axis=0) / PERIOD
    single = [tuple(sample.truth.contact.tolist()) in ((True, False), (False, True)) for sample in samples]
    settle = round(0.15 / PERIOD)
    result = []
    for k in range(2000, len(samples) - settle - 1):
        if not all(single[k - settle : k + settle : 10]):
            continue
        sample, truth = samples[k], samples[k].truth
        attitude = Attitude(
            rotation_base_to_world=truth.rotation_base_to_world,
            angular_velocity=rate[k],
            angular_acceleration=acceleration[k],
            specific_force=sample.imu.specific_force,
            covariance=np.zeros((3, 3)),
            rate_covariance=np.zeros((3, 3)),
        )
        dynamics = model.update(sample.joints.position, sample.joints.velocity, rate[k], sample.imu.specific_force)
        frame = SensorFrame(
            stamp_ns=truth.stamp_ns,
            dt=PERIOD,
            position=sample.joints.position,
            velocity=sample.joints.velocity,
            effort=sample.joints.effort,
            angular_velocity=rate[k],
            specific_force=sample.imu.specific_force,
            wrenches=truth.wrenches,
            imu_fresh=True,
            wrench_fresh=np.ones(2, dtype=bool),
        )
        phase = ContactPhase(contact=truth.contact, since=np.ones(2), name="")
        error = observer.step(frame, attitude, phase, dynamics).friction - truth.friction
        result.append(fold(error)[int(truth.contact[1])])
    return np.array(result)


def main() -> int:
    """Run everything and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--duration", type=float, default=22.0, help="of each walk [s]")
    parser.add_argument("--seeds", type=int, default=2, help="number of walks of each level")
    parser.add_argument("--noise", nargs="+", default=["clean", "paper_std", "paper", "realistic"])
    parser.add_argument("-o", "--output", type=Path, default=Path("docs/accuracy.md"))
    arguments = parser.parse_args()
    robot = load_robot("suralp")
    lines = [
        "# Accuracy: both observers on the built-in walk",
        "",
        f"Made by `python benchmarks/accuracy.py --duration {arguments.duration:g} --seeds {arguments.seeds}`.",
        "Errors in N m, six numbers a cell: " + ", ".join(JOINTS) + ", both legs together, after 6 s of walking.",
        "NEES is the mean of (error / published sigma)^2: 1 is consistent, more is overconfident.",
        "",
        *exactness(robot, arguments.duration),
    ]
    for noise in arguments.noise:
        lines += accuracy_table(robot, noise, arguments.duration, arguments.seeds)
    arguments.output.write_text("\n".join(lines))
    print(arguments.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
