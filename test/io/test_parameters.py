"""Claims about files of identified parameters: bit by bit, never half written, refused in one message."""

import copy
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest

from friction_estimator.config import Config
from friction_estimator.errors import ConfigError
from friction_estimator.estimation.estimator import Estimator
from friction_estimator.identification.result import Identification
from friction_estimator.io.export.exporter import operating_range
from friction_estimator.io.identification_file import (
    read_identification,
    save_identification,
)
from friction_estimator.io.parameters import (
    ParameterFile,
    load_parameters,
    parameters_document,
    parse_parameters,
    save_parameters,
    write_document,
)
from friction_estimator.io.robot import load_robot
from friction_estimator.laws import JointLaws, make_law
from friction_estimator.laws.identified import IdentifiedParameters, check_identified
from test.known_identification import make_identification

JOINTS = ("hip", "knee", "ankle")


@pytest.fixture
def identified() -> IdentifiedParameters:
    random = np.random.default_rng(7)
    root = random.normal(size=(3, 2, 2)) * 1e-3
    return IdentifiedParameters(
        joint_names=JOINTS,
        law_names=("coulomb_viscous",) * 3,
        values=random.uniform(size=(3, 2)) * [[1e-17], [1.0], [1e8]],
        covariance=root @ root.transpose(0, 2, 1),
        residual_variance=random.uniform(size=3),
        measurement_variance=random.uniform(size=3),
        samples=np.array([10.0, 20.0, 0.0]),
    )


def assert_same(a: IdentifiedParameters, b: IdentifiedParameters) -> None:
    assert (a.joint_names, a.law_names, a.parameter_names) == (b.joint_names, b.law_names, b.parameter_names)
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


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("format: friction_estimator/identified_parameters", "format: other", "expected the line 'format"),
        ("law: coulomb_viscous", "law: magic", "joint 'hip': unknown friction law 'magic'"),
        ("law: coulomb_viscous", "low: coulomb_viscous", "'law' of the joint 'hip' is missing; the laws are"),
        ("law: coulomb_viscous", "law: makkar", "'values' of the joint 'hip' must hold 'gamma_1'"),
        ("  knee:", "  toe:", "'joints' must hold one entry for each of joint_names"),
        ("  knee:", "  hip:", "the key 'hip' is given twice"),
        ("residual_variance:", "residual_variation:", "the joint 'hip' has 'residual_variation'; it may have"),
        ("format_version: 1", "format_version: 99", "'format_version' is 99; this version reads 1"),
        ("format_version: 1", "format_version: true", "'format_version' is True"),
        (
            "units: 'SI: torque in N m",
            "units: 'SI: torque in lbf ft",
            "'units' is .*this version reads 'SI: torque in N m",
        ),
        ("coulomb: N m", "coulomb: lbf ft", "'units' of the joint 'hip' are"),
        ("sigma: {coulomb: ", "sigma: {coulomb: 9", "'sigma' of the joint 'hip' is not the root"),
        ("samples: ", "samples: true #", "'samples' of the joint 'hip' is missing or not a number"),
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
    path = tmp_path / "friction.yaml"
    save_parameters(path, identified)
    path.write_text(
        path.read_text().replace(repr(float(identified.values[1, 0])), {"nan": ".nan", "inf": ".inf"}[str(bad)])
    )
    with pytest.raises(ConfigError, match="'values' of the joint 'knee' must hold 2 finite numbers"):
        load_parameters(path)


@pytest.mark.parametrize(
    ("name", "index", "bad", "message"),
    [
        ("values", (1, 0), np.nan, "'values' of the joint 'knee' must hold 2 finite numbers"),
        ("values", (1, 0), -50.0, "'coulomb' of the joint 'knee' is -50 N m, which the law 'coulomb_viscous' does not"),
        ("values", (1, 1), 1e300, r"'viscous' of the joint 'knee' is 1e\+300 N m s/rad, .* between 0 and 1e\+09"),
        ("covariance", (1, 0, 1), 0.5, "'covariance' of the joint 'knee' is not symmetric"),
        ("covariance", (1, 0, 0), -1e-3, "'covariance' of the joint 'knee' has a negative variance"),
        ("covariance", (1, [0, 1], [1, 0]), 0.5, "'covariance' of the joint 'knee' is not positive semidefinite"),
        (
            "covariance",
            (1, [0, 1], [1, 0]),
            1e300,
            r"'covariance' of the joint 'knee' holds 1e\+300; it cannot be above",
        ),
        ("covariance", (1, 1, 1), 1e300, r"'covariance' of the joint 'knee' holds 1e\+300"),
        ("covariance", (1, 1, 1), np.inf, "'covariance' of the joint 'knee' must hold 2x2 finite numbers"),
        ("residual_variance", 1, -0.5, "'residual_variance' of the joint 'knee' is -0.5; it is between 0 and"),
        (
            "measurement_variance",
            1,
            1e300,
            r"'measurement_variance' of the joint 'knee' is 1e\+300; it is between 0 and",
        ),
        ("samples", 1, np.nan, "'samples' of the joint 'knee' must hold one finite numbers"),
        ("joint_names", 1, "knee\n#define", r"the name of a joint is 'knee\\n#define'"),
    ],
)
def test_parameters_that_cannot_be_true_are_neither_read_nor_written_over_good_ones(
    tmp_path: Path, identified: IdentifiedParameters, name: str, index: object, bad: object, message: str
) -> None:
    path = tmp_path / "friction.yaml"
    save_parameters(path, identified)
    good = path.read_bytes()
    changed = np.array(getattr(identified, name), dtype=object if name == "joint_names" else float)
    changed[index] = bad
    wrong = replace(identified, **{name: tuple(changed) if name == "joint_names" else changed})
    with pytest.raises(ConfigError, match=f"{path} is not written, the parameters cannot be true: .*{message}"):
        save_parameters(path, wrong)
    assert path.read_bytes() == good
    with pytest.raises(ConfigError, match=f"{path}: .*{message}"):
        parse_parameters(parameters_document(wrong), path)


def test_a_slightly_negative_parameter_and_a_rounded_covariance_are_read(
    tmp_path: Path, identified: IdentifiedParameters
) -> None:
    """As least squares without bounds give them."""
    identified.values[0] = -0.02, -0.4
    identified.covariance[1] = [[1.0, 1.0 + 1e-9], [1.0, 1.0]]
    identified.covariance[2] = [[4.0, 0.0], [0.0, 0.0]]
    save_parameters(tmp_path / "friction.yaml", identified)
    assert_same(load_parameters(tmp_path / "friction.yaml"), identified)


def test_a_shape_parameter_outside_of_its_range_is_refused(tmp_path: Path) -> None:
    """A Stribeck velocity of zero would divide by zero."""
    law = make_law("stribeck_load")
    values = np.array([[1.0, 2.0, 0.0, 0.1, 0.0]])
    assert law.parameter_names[2] == "stribeck_velocity"
    wrong = IdentifiedParameters(
        ("hip",), (law.name,), values, np.zeros((1, 5, 5)), np.zeros(1), np.zeros(1), np.zeros(1)
    )
    with pytest.raises(ConfigError, match="'stribeck_velocity' of the joint 'hip' is 0 rad/s, .* between 0.001 and 10"):
        save_parameters(tmp_path / "friction.yaml", wrong)


@pytest.mark.parametrize("name", ["three_slope", "six_slope_load"])
def test_a_negative_sum_of_slopes_is_refused_and_a_single_negative_slope_is_not(name: str) -> None:
    law = make_law(name)
    one = np.zeros(1)
    values = np.zeros((1, len(law.parameters)))
    values[0, :2] = 3.0, -2.0
    good = IdentifiedParameters(("hip",), (name,), values, np.zeros((1, values.size, values.size)), one, one, one)
    check_identified(good)
    values[0, 1] = -53.0
    first, second = law.parameter_names[:2]
    message = rf"{first} \+ {second} .*of the joint 'hip' is -50 N m, which the law '{name}' .* between 0 and"
    with pytest.raises(ConfigError, match=message):
        parse_parameters(parameters_document(good), "friction.yaml")


def test_the_file_of_the_run_before_is_kept(tmp_path: Path, identified: IdentifiedParameters) -> None:
    path = tmp_path / "friction.yaml"
    save_parameters(path, identified)
    before = path.read_text()
    with closing(ParameterFile(path)) as file:
        for _ in range(3):
            identified.values[0, 0] += 1.0
            file.save_in_background(identified).result()
    assert (tmp_path / "friction.previous.yaml").read_text() == before
    assert_same(load_parameters(path), identified)
    assert sorted(os.listdir(tmp_path)) == ["friction.previous.yaml", "friction.yaml"]


def test_a_save_in_the_background_waits_for_nothing_and_sees_no_later_change(
    tmp_path: Path, identified: IdentifiedParameters, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk is slower than compensation.timeout, and the filters go on."""
    path, before, disk = tmp_path / "friction.yaml", copy.deepcopy(identified), threading.Event()
    monkeypatch.setattr(os, "fsync", lambda descriptor: disk.wait(60.0))
    with closing(ParameterFile(path)) as file:
        saving = file.save_in_background(identified)
        identified.values[0, 0] += 1.0
        assert not saving.done() and not path.exists()
        disk.set()
        saving.result()
    assert_same(load_parameters(path), before)


def test_a_process_that_is_killed_while_it_saves_leaves_a_whole_file(
    tmp_path: Path, identified: IdentifiedParameters
) -> None:
    path, rng = tmp_path / "friction.yaml", np.random.default_rng(0)
    save_parameters(path, identified)
    for _ in range(20):
        before = path.stat().st_ino
        if not (child := os.fork()):
            try:
                file = ParameterFile(path)
                while True:
                    identified.values[0, 0] += 1.0
                    file.save(identified)
            finally:
                os._exit(1)
        while path.stat().st_ino == before:
            assert os.waitpid(child, os.WNOHANG) == (0, 0), "it ended by itself"
            time.sleep(1e-3)
        time.sleep(5e-3 * rng.random())  # any moment of a save, which takes some milliseconds
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        assert load_parameters(path).joint_names == identified.joint_names


def test_one_process_writes_a_file_until_it_ends_or_is_killed(tmp_path: Path, identified: IdentifiedParameters) -> None:
    path = tmp_path / "friction.yaml"
    link = tmp_path / "link.yaml"
    link.symlink_to(path)
    code = "import sys; from friction_estimator.io.parameters import ParameterFile as F; f = F(sys.argv[1]); print(1)"
    command = [sys.executable, "-uc", f"{code}; input()", str(link)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None and other.stdout.readline() == "1\n"
        with pytest.raises(ConfigError, match=f"friction.yaml: it is in use by process {other.pid}, "):
            save_parameters(path, identified)
        other.kill()
    save_parameters(path, identified)
    assert sorted(os.listdir(tmp_path)) == ["friction.yaml", "link.yaml"]


def test_a_folder_that_cannot_be_written_is_found_before_the_first_save(tmp_path: Path) -> None:
    (tmp_path / "folder").write_text("a file")
    with pytest.raises(ConfigError, match="cannot write the parameters to .*folder/friction.yaml: File exists"):
        ParameterFile(tmp_path / "folder" / "friction.yaml")


def test_each_joint_keeps_its_own_law_and_its_own_number_of_parameters(tmp_path: Path) -> None:
    """Padding is not saved: a joint looks the same in the file whatever the other joints have."""
    random, laws = np.random.default_rng(3), ("three_slope", "coulomb_viscous", "tanh_load")
    mask = JointLaws(laws).prior_std > 0.0
    root = random.normal(size=(3, 6, 6)) * mask[:, :, None]
    mixed = IdentifiedParameters(
        joint_names=JOINTS,
        law_names=laws,
        values=random.normal(size=(3, 6)) * mask,
        covariance=root @ root.transpose(0, 2, 1),
        residual_variance=random.uniform(size=3),
        measurement_variance=random.uniform(size=3),
        samples=np.array([10.0, 20.0, 30.0]),
    )
    save_parameters(tmp_path / "friction.yaml", mixed)
    assert_same(load_parameters(tmp_path / "friction.yaml"), mixed)
    knee = parameters_document(mixed)["joints"]["knee"]
    assert (knee["law"], len(knee["values"]), np.shape(knee["covariance"])) == ("coulomb_viscous", 2, (2, 2))


def test_a_truncated_file_never_loads(tmp_path: Path, identified: IdentifiedParameters) -> None:
    path = tmp_path / "friction.yaml"
    save_parameters(path, identified)
    text = path.read_text()
    for end in range(0, text.rindex("]"), 7):
        path.write_text(text[:end])
        with pytest.raises(ConfigError):
            load_parameters(path)


def assert_same_identification(a: Identification, b: Identification) -> None:
    assert_same(a.friction, b.friction)
    assert (a.parameters.names, a.parameters.units) == (b.parameters.names, b.parameters.units)
    for name in ("values", "sigma", "reference", "identifiable"):
        first, second = getattr(a.parameters, name), getattr(b.parameters, name)
        assert (first is None) == (second is None)
        if first is not None:
            np.testing.assert_array_equal(first, second)
            zeros = first == 0
            np.testing.assert_array_equal(np.signbit(first[zeros] * 1.0), np.signbit(second[zeros] * 1.0))
    assert (a.scores, a.condition) == (b.scores, b.condition)
    assert [one.joint for one in a.samples] == [one.joint for one in b.samples]
    for first, whole in zip(a.samples, b.samples, strict=True):
        assert first.velocity.size >= 100  # a file of all joints has 400
        step = -(-whole.velocity.size // (400 // len(b.samples)))
        columns = ("velocity", "friction", "load", "fitted", "sigma")
        written = {name: np.array([float(f"{x:.4g}") for x in getattr(whole, name)[::step]]) for name in columns}
        second = replace(whole, used=whole.used[::step], **written)
        for name in (*columns, "used"):
            np.testing.assert_array_equal(getattr(first, name), getattr(second, name))
        np.testing.assert_array_equal(operating_range(first), operating_range(second))
    assert (a.verdicts, a.provenance) == (b.verdicts, b.provenance)


def test_a_whole_identification_comes_back_bit_by_bit_and_its_samples_with_four_digits(tmp_path: Path) -> None:
    identification = make_identification()
    save_identification(tmp_path / "friction.yaml", identification)
    assert_same_identification(read_identification(tmp_path / "friction.yaml"), identification)


def test_odd_names_unknown_numbers_and_missing_references_survive(tmp_path: Path) -> None:
    identification = make_identification(("yes", "1.0", "null", "a: b # c"))
    score = replace(identification.scores[0], rigid_body_error=float("inf"), torque_rms=1e-300)
    odd = replace(
        identification,
        parameters=replace(identification.parameters, reference=None, identifiable=None),
        scores=(score, *identification.scores[1:]),
        verdicts=("- not a list: {a}", "Zeile mit Umlaut äöü\nund Umbruch", ""),
        provenance=replace(identification.provenance, command="", data=(("x: y", ""),)),
    )
    save_identification(tmp_path / "friction.yaml", odd)
    loaded = read_identification(tmp_path / "friction.yaml")
    assert_same_identification(loaded, odd)
    assert loaded.friction.joint_names == ("yes", "1.0", "null", "a: b # c")


def test_the_live_node_reads_an_identification_as_any_parameter_file(tmp_path: Path) -> None:
    identification = make_identification()
    save_identification(tmp_path / "friction.yaml", identification)
    assert_same(load_parameters(tmp_path / "friction.yaml"), identification.friction)
    save_parameters(tmp_path / "plain.yaml", identification.friction)
    plain = read_identification(tmp_path / "plain.yaml")
    assert_same(plain.friction, identification.friction)
    assert (plain.scores, plain.samples, plain.provenance.data) == ((), (), ())
    count = len(plain.parameters.names)
    assert (plain.parameters.names, plain.parameters.units) == (
        identification.parameters.names[:count],
        identification.parameters.units[:count],
    )
    np.testing.assert_array_equal(plain.parameters.values, identification.parameters.values[:count])
    np.testing.assert_allclose(plain.parameters.sigma, identification.parameters.sigma[:count], rtol=1e-12)


def test_an_estimator_starts_from_an_identification(tmp_path: Path) -> None:
    """As the live node does with `identified_parameters`."""
    joints = Estimator(*_suralp()).joint_names
    identification = make_identification(joints)
    save_identification(tmp_path / "friction.yaml", identification)
    laws = [f"{joint}={law}" for joint, law in zip(joints, identification.friction.law_names, strict=True)]
    estimator = Estimator(*_suralp({"identifier.joint_laws": laws}))
    estimator.restore(load_parameters(tmp_path / "friction.yaml"))
    np.testing.assert_allclose(estimator.identified.values, identification.friction.values, atol=1e-12)


def _suralp(overrides: Mapping[str, object] = MappingProxyType({})) -> tuple[Config, str]:
    robot = load_robot("suralp", overrides)
    return robot.config, robot.urdf_xml


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("condition: 41.5", "condition: high", "'identification' is damaged: could not convert"),
        ("method: inverse_dynamics", "methud: inverse_dynamics", "'identification' is damaged: 'method' is missing"),
        ("friction load", "friction lode", "'identification' is damaged: the samples of 'hip' lack the column load"),
    ],
)
def test_a_damaged_identification_is_one_clear_error(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = tmp_path / "friction.yaml"
    save_identification(path, make_identification())
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(ConfigError, match=message):
        read_identification(path)
    assert load_parameters(path).joint_names == ("hip", "knee", "ankle")


def test_a_truncated_identification_never_loads(tmp_path: Path) -> None:
    path = tmp_path / "friction.yaml"
    save_identification(path, make_identification())
    text = path.read_text()
    for end in np.linspace(0, text.rindex("]"), 40).astype(int):
        path.write_text(text[:end])
        with pytest.raises(ConfigError):
            load_parameters(path)


def test_a_live_run_leaves_the_identification_that_it_started_from(tmp_path: Path) -> None:
    identification = make_identification()
    path = tmp_path / "friction.yaml"
    save_identification(path, identification)
    before = path.read_bytes()
    save_parameters(path, identification.friction)
    assert read_identification(path).provenance.data == ()
    assert (tmp_path / "friction.identified.yaml").read_bytes() == before
    save_parameters(path, identification.friction)  # nothing is kept twice
    assert (tmp_path / "friction.identified.yaml").read_bytes() == before


@pytest.mark.parametrize(
    ("name", "index", "bad", "message"),
    [
        ("values", (3, 0), np.nan, "'values' of the joint 'l_knee' must be finite"),
        ("covariance", (3, 0, 0), np.inf, "'covariance' of the joint 'l_knee' must be finite"),
        ("covariance", (3, [0, 1], [1, 0]), 1e5, "'covariance' of the joint 'l_knee' is not positive semidefinite"),
        ("residual_variance", 3, -1.0, "'residual_variance' of the joint 'l_knee' is -1"),
    ],
)
def test_an_estimator_keeps_what_it_has_when_parameters_cannot_be_true(
    name: str, index: object, bad: float, message: str
) -> None:
    estimator = Estimator(*_suralp())
    before = estimator.identified
    changed = getattr(before, name).copy()
    changed[index] = bad
    with pytest.raises(ConfigError, match=message):
        estimator.restore(replace(before, **{name: changed}))
    assert_same(estimator.identified, before)


def test_a_friction_that_no_motor_overcomes_is_refused_and_another_robot_is_noted(urdf_xml: str) -> None:
    config, urdf = _suralp()
    estimator = Estimator(config, urdf)
    saved = replace(estimator.identified, covariance=1e-6 * estimator.identified.covariance)
    with pytest.raises(ConfigError, match=r"friction of 'l_hip_yaw' would be .* N m at 1 rad/s; its motor has 150 N m"):
        estimator.restore(replace(saved, values=saved.values + 1e4))
    heavier = Estimator(config, urdf.replace('mass value="', 'mass value="1'))
    (note,) = heavier.restore(saved)
    assert "identified with another robot model" in note and estimator.restore(saved) == ()


def test_links_in_a_circle_and_pipes_are_one_error(tmp_path: Path, identified: IdentifiedParameters) -> None:
    loop, other, pipe = tmp_path / "a.yaml", tmp_path / "b.yaml", tmp_path / "pipe.yaml"
    loop.symlink_to(other)
    other.symlink_to(loop)
    os.mkfifo(pipe)
    for path in (loop, pipe):
        with pytest.raises(ConfigError, match="cannot write the parameters"):
            save_parameters(path, identified)
        with pytest.raises(ConfigError, match="cannot read"):
            load_parameters(path)


def test_an_identification_does_not_replace_the_file_that_a_process_saves_to(
    tmp_path: Path, identified: IdentifiedParameters
) -> None:
    path = tmp_path / "friction.yaml"
    with closing(ParameterFile(path)) as file:
        for _ in range(2):  # before the first save, and after it
            with pytest.raises(ConfigError, match=f"cannot write .*it is in use by process {os.getpid()}, "):
                write_document(path, parameters_document(identified))
            file.save(identified)
    write_document(path, parameters_document(identified))


def test_joints_that_were_not_saved_start_anew_and_are_named() -> None:
    estimator = Estimator(*_suralp())
    saved = estimator.identified
    some = replace(
        saved,
        **{
            name: getattr(saved, name)[2:]
            for name in (
                "joint_names",
                "law_names",
                "values",
                "covariance",
                "residual_variance",
                "measurement_variance",
                "samples",
                "velocity_range",
            )
        },
    )
    (note,) = estimator.restore(some)
    assert all(joint in note for joint in estimator.joint_names[:2]) and estimator.joint_names[2] not in note
    assert estimator.restore(saved) == ()
