"""How accurate are attitude, contact phase and base state on recorded walks of an iCub with Vicon ground truth?

    python -m benchmarks.icub FOLDER [--figure SVG] [--velocities]

FOLDER holds ``model.urdf`` and the MATLAB v7.3 files of Ramadoss et al. 2022 (see docs/results/base_state.md). The
study needs h5py (``pip install h5py``). It prints tables as Markdown and takes one minute. The recordings have joints
at 100 Hz, the IMU on the root link and the normal force of each foot, but no joint torques: no friction is estimated.

- The samples go through `Estimator.add_joints`, `add_imu` and `add_wrench` with their recorded stamps. The five other
  numbers of a wrench are zero, so the centre of pressure is taken at the sole origin.
- Over the first second the mean yaw and position are those of the truth. Roll and pitch are not aligned: they hold the
  offset of the Vicon marker frame (up to 0.6 deg). No time is shifted.
- The true velocity is that of the base origin in world axes, by a second-order Savitzky-Golay filter over 9 samples of
  the Vicon position. The noise of Vicon is part of every velocity error.
- The distance travelled is the horizontal length of the Vicon path over steps of 0.45 s, lateral sway included.
- The reference of the contact (`reference_contact`) shares its force sensors with the detector: it shows delay and
  chatter, not whether a sole really rests.
- Baselines: the gyroscope integrated from the true attitude without bias correction; the legs alone (`walked`); the
  published filter `lipm`.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from benchmarks.icub.recording import Recording, read_folder
from benchmarks.icub.tracks import (
    Errors,
    Track,
    contact_agreement,
    errors_of,
    estimated,
    integrated,
    reference_contact,
    robot_of,
    walked,
)
from benchmarks.icub.velocities import study
from benchmarks.shared import figures
from benchmarks.shared.command import command, folder_with, make_parser, output_file
from benchmarks.shared.pages import table
from friction_estimator.metrics import root_mean_square
from friction_estimator.robot.model import RobotModel

Tracks = Mapping[str, Mapping[str, Track]]
"""Tracks by recording and estimator."""
HEADING = (
    "recording", "estimator", "roll, pitch RMSE (max) [deg]", "yaw RMSE (max) [deg]", "yaw drift [deg/min]",
    "position at the end x, y, z [mm]", "horizontal drift [% of the distance travelled]", "height RMSE [mm]",
    "velocity RMSE x, y, z [m/s]",
)  # fmt: skip

COVERAGE = (
    "recording", "position within two sigma x, y, z [% of samples]", "sigma at the end [mm]",
    "velocity within two sigma x, y, z", "mean sigma [mm/s]", "second differences of the position, RMS [mm]",
)  # fmt: skip
CONTACT = ("recording", "phase as in the non-causal reference [% of samples]", "changes of contact per true one")


@command
def main(arguments: Sequence[str] | None = None) -> None:
    parser = make_parser("icub", __doc__)
    parser.add_argument("folder", type=folder_with("model.urdf", "*.mat"), help="with model.urdf and .mat files")
    parser.add_argument("--figure", type=output_file, help="SVG file with errors of yaw and position over time")
    parser.add_argument("--velocities", action="store_true", help="compare velocities by Vicon, accelerometer and legs")
    options = parser.parse_args(arguments)
    recordings, urdf = read_folder(options.folder), options.folder / "model.urdf"
    tracks = {recording.name: tracks_of(recording, urdf) for recording in recordings}
    print(*report(recordings, tracks, urdf), sep="\n", flush=True)
    if options.figure is not None:
        draw_errors(recordings, tracks, options.figure)
    if options.velocities:
        print(study(recordings, urdf))


def tracks_of(recording: Recording, urdf: Path) -> dict[str, Track]:
    """All estimators on one recording."""
    ours = estimated(recording, urdf)
    contact = ours.contact if ours.contact is not None else np.zeros((recording.time.size, 2), dtype=bool)
    return {
        "gyroscope integrated": integrated(recording, urdf),
        "legs alone": walked(recording, urdf, contact),
        "`lipm` (published)": estimated(recording, urdf, base_state__method="lipm"),
        "`odometry` (default)": ours,
    }


def report(recordings: Sequence[Recording], tracks: Tracks, urdf: Path) -> list[str]:
    """Tables of the errors of every estimator, of the contact phase and of the standard deviations."""
    robot = robot_of(urdf)
    weight = RobotModel(robot.config, robot.urdf_xml).weight
    rows, contacts, covered = [], [], []
    for recording in recordings:
        reference = reference_contact(recording, weight)
        for name, track in tracks[recording.name].items():
            errors = errors_of(track, recording)
            rows.append((recording.name, name, *_cells(errors)))
        covered.append(_coverage(recording.name, track, errors))  # of our estimator, the last one
        if track.contact is not None:
            agreement, changes = contact_agreement(track.contact, reference)
            contacts.append((recording.name, f"{100.0 * agreement:.1f}", f"{changes:.2f}"))
    return [*table(HEADING, rows), *table(CONTACT, contacts), *table(COVERAGE, covered)]


def _cells(errors: Errors) -> list[str]:
    angle, worst = root_mean_square(errors.angle), np.abs(errors.angle).max(axis=0)
    cells = [
        f"{angle[0]:.2f} ({worst[0]:.1f}), {angle[1]:.2f} ({worst[1]:.1f})",
        f"{angle[2]:.2f} ({worst[2]:.1f})",
        f"{errors.yaw_drift:+.1f}",
    ]
    if not np.isfinite(errors.position).all():
        return [*cells, "", "", "", ""]
    end = 1e3 * errors.end_position
    return [
        *cells,
        f"{end[0]:+.0f}, {end[1]:+.0f}, {end[2]:+.0f}",
        f"{0.1 * np.hypot(*end[:2]) / errors.distance:.1f}" if errors.distance > 0.5 else "stands",
        f"{1e3 * root_mean_square(errors.position)[2]:.1f}",
        ", ".join(f"{value:.3f}" for value in root_mean_square(errors.velocity)),
    ]


def _coverage(recording: str, track: Track, errors: Errors) -> tuple[str, ...]:
    """Share of the errors within two standard deviations, and smoothness of the position."""
    if track.position is None or track.position_sigma is None or track.velocity_sigma is None:
        return recording, "", "", "", "", ""
    shares = [
        ", ".join(f"{x:.0f}" for x in 100.0 * (np.abs(error) < 2.0 * sigma).mean(axis=0))
        for error, sigma in ((errors.position, track.position_sigma), (errors.velocity, track.velocity_sigma))
    ]
    sizes = [track.position_sigma[-1], track.velocity_sigma.mean(axis=0)]
    sigmas = [", ".join(f"{x:.0f}" for x in 1e3 * size) for size in sizes]
    jumps = ", ".join(f"{x:.1f}" for x in 1e3 * root_mean_square(np.diff(track.position, 2, axis=0)))
    return recording, shares[0], sigmas[0], shares[1], sigmas[1], jumps


def draw_errors(recordings: Sequence[Recording], tracks: Tracks, path: Path) -> None:
    """Yaw error and horizontal position error over time, one column per recording."""
    columns = []
    for recording in recordings:
        top = figures.Panel(recording.name, "", "yaw error [deg]", legend=not columns)
        bottom = figures.Panel("", "time [s]", "horizontal error [mm]", y_limits=(0.0, 150.0))
        for (name, track), colour in zip(tracks[recording.name].items(), figures.COLOURS, strict=False):
            errors = errors_of(track, recording)
            top.line(recording.time, errors.angle[:, 2], colour, name.replace("`", ""), 1.0)
            bottom.line(recording.time, 1e3 * np.linalg.norm(errors.position[:, :2], axis=1), colour, width=1.0)
        columns.append((top, bottom))
    figures.draw(path, list(zip(*columns, strict=True)), 500.0 * len(recordings), 520.0)


if __name__ == "__main__":
    sys.exit(main())
