"""Recordings of Ramadoss et al. 2022: joints, IMU, normal forces of the feet, and the base pose by Vicon."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation

from benchmarks.shared.command import require
from friction_estimator.errors import InputError
from friction_estimator.types import FloatArray

JOINTS = tuple(
    "neck_pitch neck_roll neck_yaw torso_pitch torso_roll torso_yaw l_shoulder_pitch l_shoulder_roll l_shoulder_yaw "
    "l_elbow r_shoulder_pitch r_shoulder_roll r_shoulder_yaw r_elbow l_hip_pitch l_hip_roll l_hip_yaw l_knee "
    "l_ankle_pitch l_ankle_roll r_hip_pitch r_hip_roll r_hip_yaw r_knee r_ankle_pitch r_ankle_roll".split()
)
"""Columns of the joints; the files do not name them."""

_FIELDS = (
    "estimatorJointsTime estimatorJointsPos estimatorJointsVel imuAcc imuOmega lfForceZ rfForceZ linkBasePos "
    "linkBaseRot".split()
)


@dataclass(frozen=True, slots=True)
class Recording:
    """One file.

    Attributes
    ----------
    name : of the file, without suffix
    time : (s,) recorded stamps, from zero [s]
    position, velocity : (s, 26) of ``JOINTS``
    angular_velocity, specific_force : (s, 3) IMU axes
    force : (s, 2) normal force on the left and right sole [N]
    true_position : (s, 3) of the base by Vicon [m]
    true_rotation : (s) base to world by Vicon
    """

    name: str
    time: FloatArray
    position: FloatArray
    velocity: FloatArray
    angular_velocity: FloatArray
    specific_force: FloatArray
    force: FloatArray
    true_position: FloatArray
    true_rotation: Rotation

    @property
    def period(self) -> float:
        """Mean sampling period [s]."""
        return float(self.time[-1]) / (self.time.size - 1)


def read_folder(folder: Path) -> list[Recording]:
    """All recordings of a folder, by name.

    Raises
    ------
    InputError
        When h5py or a field of a recording is missing.
    """
    require("h5py", "MATLAB v7.3 files")
    return [_read(path) for path in sorted(folder.glob("*.mat"))]


def _read(path: Path) -> Recording:
    import h5py

    with h5py.File(path, "r") as file:
        missing = [name for name in _FIELDS if name not in file]
        if missing:
            raise InputError(f"{path.name} lacks {', '.join(missing)}")
        columns = {name: np.atleast_2d(np.array(file[name], dtype=float)).T for name in _FIELDS}
    if columns["estimatorJointsPos"].shape[1] != len(JOINTS):
        raise InputError(f"{path.name} has {columns['estimatorJointsPos'].shape[1]} joints, not {len(JOINTS)}")
    time = columns["estimatorJointsTime"][:, 0]
    return Recording(
        name=path.stem,
        time=time - time[0],
        position=columns["estimatorJointsPos"],
        velocity=columns["estimatorJointsVel"],
        angular_velocity=columns["imuOmega"],
        specific_force=columns["imuAcc"],
        force=np.hstack((columns["lfForceZ"], columns["rfForceZ"])),
        true_position=columns["linkBasePos"],
        true_rotation=Rotation.from_euler("xyz", columns["linkBaseRot"]),
    )
