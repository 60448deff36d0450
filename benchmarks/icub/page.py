"""The table of docs/design/base_state.md, and its figure."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.icub.recording import Recording
from benchmarks.icub.scores import Errors, contact_agreement, errors_of, reference_contact, rms
from benchmarks.icub.tracks import Track, estimated, integrated, robot_of, walked
from friction_estimator.robot.model import RobotModel

_HEADER = (
    "| recording | estimator | roll, pitch RMSE (max) [deg] | yaw RMSE (max) [deg] | yaw drift [deg/min] "
    "| position at the end x, y, z [mm] | horizontal drift [% of the distance travelled] | height RMSE [mm] "
    "| velocity RMSE x, y, z [m/s] |\n|---|---|---|---|---|---|---|---|---|"
)

_COVERED = (
    "| recording | position within two sigma x, y, z [% of samples] | sigma at the end [mm] "
    "| velocity within two sigma x, y, z | mean sigma [mm/s] | second differences of the position, RMS [mm] |\n"
    "|---|---|---|---|---|---|"
)


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


def report(recordings: list[Recording], urdf: Path) -> str:
    """Markdown: the errors of every estimator, and the contact phase."""
    lines, contacts, covered = [_HEADER], [], [_COVERED]
    robot = robot_of(urdf)
    weight = RobotModel(robot.config, robot.urdf_xml).weight
    for recording in recordings:
        reference = reference_contact(recording, weight)
        for name, track in tracks_of(recording, urdf).items():
            errors = errors_of(track, recording)
            lines.append(_row(recording.name, name, errors))
        covered.append(_coverage(recording.name, track, errors))  # of our estimator, the last one
        if track.contact is not None:
            agreement, changes = contact_agreement(track.contact, reference)
            contacts.append(f"| {recording.name} | {100.0 * agreement:.1f} | {changes:.2f} |")
    lines += [
        "",
        "| recording | phase as in the non-causal reference [% of samples] | changes of contact per true one |",
        "|---|---|---|",
    ]
    return "\n".join([*lines, *contacts, "", *covered])


def _row(recording: str, name: str, errors: Errors) -> str:
    angle, worst = rms(errors.angle), np.abs(errors.angle).max(axis=0)
    cells = [
        recording,
        name,
        f"{angle[0]:.2f} ({worst[0]:.1f}), {angle[1]:.2f} ({worst[1]:.1f})",
        f"{angle[2]:.2f} ({worst[2]:.1f})",
        f"{errors.yaw_drift:+.1f}",
    ]
    if np.isfinite(errors.position).all():
        end = 1e3 * errors.end_position
        cells += [
            f"{end[0]:+.0f}, {end[1]:+.0f}, {end[2]:+.0f}",
            f"{0.1 * np.hypot(*end[:2]) / errors.way:.1f}" if errors.way > 0.5 else "stands",
            f"{1e3 * rms(errors.position)[2]:.1f}",
            ", ".join(f"{value:.3f}" for value in rms(errors.velocity)),
        ]
    else:
        cells += ["", "", "", ""]
    return "| " + " | ".join(cells) + " |"


def _coverage(recording: str, track: Track, errors: Errors) -> str:
    """How honest the standard deviations of a track are, and how smooth its position."""
    if track.position is None or track.position_sigma is None or track.velocity_sigma is None:
        return f"| {recording} | | | | | |"
    shares = [
        ", ".join(f"{x:.0f}" for x in 100.0 * (np.abs(error) < 2.0 * sigma).mean(axis=0))
        for error, sigma in ((errors.position, track.position_sigma), (errors.velocity, track.velocity_sigma))
    ]
    sizes = [track.position_sigma[-1], track.velocity_sigma.mean(axis=0)]
    sigmas = [", ".join(f"{x:.0f}" for x in 1e3 * size) for size in sizes]
    jumps = ", ".join(f"{x:.1f}" for x in 1e3 * rms(np.diff(track.position, 2, axis=0)))
    return f"| {recording} | {shares[0]} | {sigmas[0]} | {shares[1]} | {sigmas[1]} | {jumps} |"


def draw(recordings: list[Recording], urdf: Path, path: Path) -> None:
    """Yaw error and horizontal position error over time, one column a recording."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(2, len(recordings), figsize=(5.0 * len(recordings), 5.0), squeeze=False)
    for column, recording in enumerate(recordings):
        for name, track in tracks_of(recording, urdf).items():
            errors = errors_of(track, recording)
            axes[0, column].plot(recording.time, errors.angle[:, 2], label=name.replace("`", ""), lw=1)
            distance = 1e3 * np.linalg.norm(errors.position[:, :2], axis=1)
            axes[1, column].plot(recording.time, distance, lw=1)
        axes[0, column].set(title=recording.name, ylabel="yaw error [deg]")
        axes[1, column].set(xlabel="time [s]", ylabel="horizontal error [mm]", ylim=(0.0, 150.0))
        for axis in axes[:, column]:
            axis.grid(alpha=0.3)
    axes[0, 0].legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
