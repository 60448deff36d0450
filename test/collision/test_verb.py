"""``collisions``: thresholds from a bag, and collisions in bags."""

import numpy as np
import pytest

from friction_estimator.cli.main import main
from friction_estimator.collision.detector import Thresholds, load_thresholds


def test_thresholds_are_learned_from_a_bag_and_tighter_ones_show_collisions_in_it(tmp_path, capsys):
    pytest.importorskip("mujoco", reason="MuJoCo is not installed")
    bag, file = str(tmp_path / "walk"), tmp_path / "thresholds.yaml"
    assert main(["simulate", "-o", bag, "--duration", "1.5", "--seed", "4"]) == 0
    assert main(["collisions", bag, "--thresholds", str(file)]) == 1
    assert f"cannot read {file}" in capsys.readouterr().err
    assert main(["collisions", bag, "--thresholds", str(file), "--learn"]) == 0
    assert capsys.readouterr().out.endswith(f"thresholds written to {file}\n")
    learned = load_thresholds(file)
    assert np.isfinite(learned.values[:, 0]).any() and np.isinf(learned.values[:, 1]).all()
    assert main(["collisions", bag, "--thresholds", str(file)]) == 0
    assert capsys.readouterr().out.endswith("0 collisions\n")
    Thresholds(learned.joint_names, np.full_like(learned.values, 1e-6), learned.source).save(file)
    assert main(["collisions", bag, "--thresholds", str(file)]) == 0
    printed = capsys.readouterr().out
    assert "l_hip_yaw to l_ankle_roll" in printed and printed.endswith("2 collisions\n")
    assert main(["collisions", bag, "--thresholds", str(file), "--set", "observer=momentum"]) == 1
    assert "learned with the external torque of the observer kalman, not of the observer momentum" in (
        capsys.readouterr().err
    )
