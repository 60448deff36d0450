"""Attitude, contact phase and base state on recorded iCub walks, against their Vicon ground truth.

    python benchmarks/icub_base.py FOLDER [--figure PNG] [--velocities]

FOLDER holds ``model.urdf`` and MATLAB v7.3 files of Ramadoss et al. 2022 (see docs/design/base_state.md); needs h5py,
and matplotlib for the figure. The recordings have no joint torques.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.icub.page import draw, report
from benchmarks.icub.recording import RecordingError, read_folder
from benchmarks.icub.velocities import study
from friction_estimator.errors import FrictionEstimatorError


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="folder with model.urdf and .mat files")
    parser.add_argument("--figure", type=Path, help="draw yaw and position errors into this file")
    parser.add_argument("--velocities", action="store_true", help="compare velocities by Vicon, accelerometer and legs")
    arguments = parser.parse_args()
    try:
        recordings = read_folder(arguments.folder)
        print(report(recordings, arguments.folder / "model.urdf"))
        if arguments.velocities:
            print("\n" + study(recordings, arguments.folder / "model.urdf"))
        if arguments.figure is not None:
            draw(recordings, arguments.folder / "model.urdf", arguments.figure)
    except (RecordingError, FrictionEstimatorError) as error:
        print(f"icub_base: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
