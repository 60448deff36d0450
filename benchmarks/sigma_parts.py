"""What is the standard deviation of the Kalman stage made of, and how large is the error?

    python -m benchmarks.sigma_parts [--duration 14] [--noise paper_std] [--seed 0]

Fills the table of docs/results/kalman.md: RMS over the stance of a walk, both legs together. Takes a minute.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np

from benchmarks.shared.command import command, command_line, longer_than, make_parser
from benchmarks.shared.estimates import SETTLED, configure, drive, joint_groups, late_phases
from benchmarks.shared.pages import DOCS, add_page, number, table
from benchmarks.shared.walks import find_case, simulate
from friction_estimator.config import Config
from friction_estimator.estimation.estimator import Estimator
from friction_estimator.estimation.health import Health
from friction_estimator.estimation.kalman.stage import KalmanFriction
from friction_estimator.io.robot import load_robot
from friction_estimator.metrics import root_mean_square
from friction_estimator.robot.model import RobotModel
from friction_estimator.simulation import noise_names
from friction_estimator.types import Attitude, ContactPhase, Dynamics, FloatArray, JointFriction, SensorFrame

ROBOT = "suralp"
PARTS = (
    "sigma, part of law and law error",
    "sigma, part of one-sided friction",
    "sigma, part of the uncertain velocity",
    "sigma of law and law error while nothing is measured",
)


class RecordingStage(KalmanFriction):
    """Keeps the parts of every variance that it publishes, (4, n) a frame [(N m)^2]."""

    def __init__(self, config: Config, robot: RobotModel) -> None:
        super().__init__(config, robot, Health())
        self.variances: dict[int, FloatArray] = {}

    def step(self, frame: SensorFrame, attitude: Attitude, phase: ContactPhase, dynamics: Dynamics) -> JointFriction:
        """Use one frame, and keep the parts of its variances."""
        estimate = super().step(frame, attitude, phase, dynamics)
        estimates, now = self.bank.estimates, self._frames.newest
        velocity_variance = now.law.velocity_variance
        dry = self._motors.coulomb_at_joints(estimates.dry_friction)
        size = np.maximum(np.abs(now.model) / np.maximum(dry, 1e-9), 1.0)
        unmodelled = self.unmodelled_variance + size**2 * estimates.constant.asymmetric_friction_variance
        other = unmodelled + velocity_variance
        measured, alone = (np.maximum(std**2 - other, 0.0) for std in (now.sigma, now.model_sigma))
        self.variances[frame.stamp_ns] = np.stack((measured, unmodelled, velocity_variance, alone))
        return estimate


class RecordingEstimator(Estimator):
    """Estimator with a :class:`RecordingStage`."""

    def __init__(self, config: Config, urdf_xml: str) -> None:
        super().__init__(config, urdf_xml)
        self.stage = RecordingStage(config, self.pipeline.robot)
        self.pipeline.friction = self.stage


@command
def main(arguments: Sequence[str] | None = None) -> None:
    parser = make_parser("sigma_parts", __doc__)
    parser.add_argument("--duration", type=longer_than(SETTLED), default=14.0, help="of the walk [s]")
    parser.add_argument("--noise", choices=noise_names(), default="paper_std", help="of the sensors")
    parser.add_argument("--seed", type=int, default=0, help="of the sensor noise")
    add_page(parser, DOCS / "results" / "kalman.md", "parts of sigma")
    options = parser.parse_args(arguments)
    robot = load_robot(ROBOT)
    model = RobotModel(robot.config, robot.urdf_xml)
    run = simulate(robot, model, find_case("walk").scenario(options.duration), options.noise, options.seed)
    estimator = RecordingEstimator(configure(ROBOT, options.noise, {}), robot.urdf_xml)
    estimates = drive(estimator, run.samples)
    groups, stance = joint_groups(model.joint_names, model.limb), late_phases(run)["stance"]

    def rms(values: FloatArray) -> FloatArray:
        """Per column of joints (g,), over the stance, from values of every sample (m, n)."""
        return root_mean_square(groups.fold(np.where(stance, values, np.nan)))

    variances = np.array([estimator.stage.variances[one.stamp_ns] for one in estimates])
    rows = {
        "RMS error": rms(np.array([one.friction for one in estimates]) - run.friction),
        "sigma": rms(np.array([one.sigma for one in estimates])),
        **{part: rms(np.sqrt(variances[:, k])) for k, part in enumerate(PARTS)},
        "RMS error of the law alone": rms(np.array([one.model for one in estimates]) - run.friction),
    }
    lines = [f"`{command_line('sigma_parts', arguments)}`", ""]
    lines += table(("", *groups.labels), [(name, *(number(value, 3) for value in row)) for name, row in rows.items()])
    options.output.fill("parts of sigma", lines)
    print(options.output.path)


if __name__ == "__main__":
    sys.exit(main())
