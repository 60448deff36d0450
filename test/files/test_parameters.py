import os
from pathlib import Path

import numpy as np
import pytest

from friction_estimator.core.exceptions import ConfigError
from friction_estimator.core.friction.identified import IdentifiedParameters
from friction_estimator.files import load_parameters, save_parameters

JOINTS = ("hip", "knee", "ankle")


@pytest.fixture
def identified() -> IdentifiedParameters:
    random = np.random.default_rng(7)
    root = random.normal(size=(3, 2, 2)) * 1e-3
    return IdentifiedParameters(
        law="coulomb_viscous",
        parameter_names=("coulomb", "viscous"),
        joint_names=JOINTS,
        values=random.normal(size=(3, 2)) * [[1e-17], [1.0], [1e17]],
        covariance=root @ root.transpose(0, 2, 1),
        residual_variance=random.uniform(size=3),
        measurement_variance=random.uniform(size=3),
        samples=np.array([10.0, 20.0, 0.0]),
    )


def assert_same(a: IdentifiedParameters, b: IdentifiedParameters) -> None:
    assert (a.law, a.parameter_names, a.joint_names) == (b.law, b.parameter_names, b.joint_names)
    for name in ("values", "covariance", "residual_variance", "measurement_variance", "samples"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))


def test_what_is_saved_comes_back_bit_by_bit(tmp_path: Path, identified: IdentifiedParameters) -> None:
    path = tmp_path / "new folder" / "friction.yaml"
    save_parameters(path, identified)
    assert_same(load_parameters(path), identified)


def test_saving_again_replaces_the_file_and_leaves_nothing_else(
    tmp_path: Path, identified: IdentifiedParameters
) -> None:
    path = tmp_path / "friction.yaml"
    path.write_text("old")
    save_parameters(path, identified)
    assert_same(load_parameters(path), identified)
    assert os.listdir(tmp_path) == ["friction.yaml"]


def test_a_crash_while_writing_leaves_the_old_file(
    tmp_path: Path, identified: IdentifiedParameters, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "friction.yaml"
    path.write_text("old")

    def full_disk(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(ConfigError, match="cannot write the parameters.*No space left"):
        save_parameters(path, identified)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["friction.yaml"]


def test_joints_are_mapped_by_name_not_by_order(tmp_path: Path, identified: IdentifiedParameters) -> None:
    save_parameters(tmp_path / "friction.yaml", identified)
    loaded = load_parameters(tmp_path / "friction.yaml", ("ankle", "hip"))
    assert loaded.joint_names == ("ankle", "hip")
    np.testing.assert_array_equal(loaded.values, identified.values[[2, 0]])
    np.testing.assert_array_equal(loaded.covariance, identified.covariance[[2, 0]])
    np.testing.assert_array_equal(loaded.residual_variance, identified.residual_variance[[2, 0]])


def test_a_joint_that_is_not_in_the_file_is_named(tmp_path: Path, identified: IdentifiedParameters) -> None:
    save_parameters(tmp_path / "friction.yaml", identified)
    with pytest.raises(ConfigError, match=r"no parameters for 'toe'.*'ankle', 'hip', 'knee'"):
        load_parameters(tmp_path / "friction.yaml", ("hip", "toe"))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("format: friction_estimator/identified_parameters", "format: other", "expected the line 'format"),
        ("law: coulomb_viscous", "law: magic", "unknown friction law 'magic'"),
        ("[coulomb, viscous]", "[coulomb]", "but the law 'coulomb_viscous' has"),
        ("  knee:", "  toe:", "'joints' must hold one entry for each of joint_names"),
        ("  knee:", "  hip:", "the key 'hip' is given twice"),
        ("residual_variance:", "residual_variation:", "'residual_variance' of the joint 'hip' is missing"),
        ("values: {coulomb:", "values: {dry:", "'values' of the joint 'hip' must hold 'coulomb', 'viscous'"),
        ("covariance:\n", "covariance: nothing\n", "YAML"),
    ],
)
def test_a_broken_or_foreign_file_is_refused_in_one_message(
    tmp_path: Path, identified: IdentifiedParameters, old: str, new: str, message: str
) -> None:
    path = tmp_path / "friction.yaml"
    save_parameters(path, identified)
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(ConfigError, match=message) as caught:
        load_parameters(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_numbers_that_are_not_finite_are_refused(tmp_path: Path, identified: IdentifiedParameters, bad: float) -> None:
    identified.values[1, 0] = bad
    save_parameters(tmp_path / "friction.yaml", identified)
    with pytest.raises(ConfigError, match="'values' of the joint 'knee' must hold 2 finite numbers"):
        load_parameters(tmp_path / "friction.yaml")


def test_a_truncated_file_never_loads(tmp_path: Path, identified: IdentifiedParameters) -> None:
    path = tmp_path / "friction.yaml"
    save_parameters(path, identified)
    text = path.read_text()
    for end in range(0, text.rindex("]"), 7):
        path.write_text(text[:end])
        with pytest.raises(ConfigError):
            load_parameters(path)
