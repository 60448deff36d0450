"""What the arguments of the launch file mean for the nodes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from friction_estimator.errors import ConfigError, choices
from friction_estimator.io.node_parameters import NODE_FIELDS
from friction_estimator.io.robot import robot_names
from friction_estimator.ros.launch_arguments import ARGUMENTS, LaunchRequest, unknown_arguments


def request(**given: str) -> LaunchRequest:
    return LaunchRequest({**{item.name: item.default for item in ARGUMENTS}, **given}, given)


def params_file(folder: Path, **parameters: Any) -> str:
    path = folder / "params.yaml"
    path.write_text(yaml.safe_dump({"/**": {"ros__parameters": parameters}}))
    return str(path)


def test_every_argument_is_described() -> None:
    names = {item.name for item in ARGUMENTS if item.description}
    assert len(names) == len(ARGUMENTS)
    assert names >= {"source", "bag", "robot", "use_sim_time", "params_file", "namespace", "log_level", "rviz"}


def test_only_what_somebody_gave_or_the_launch_file_knows_better_is_passed_on() -> None:
    parameters = request(seed="0").parameters("simulation_node")
    assert Path(parameters.pop("robot.urdf")).is_absolute()
    assert parameters == {
        "use_sim_time": False, "publish_clock": False, "wait_for_subscribers": 1, "max_lead": 0.5, "seed": 0,
    }  # fmt: skip


def test_a_split_graph_has_two_estimators_that_simulation_and_bag_player_wait_for() -> None:
    assert request().estimators == {"friction_estimator": {}}
    split = request(graph="split", record="walk")
    assert split.estimators == {
        "base_state": {"stages": "base_state"}, "friction_estimator": {"stages": "friction"},
    }  # fmt: skip
    assert split.parameters("simulation_node")["wait_for_subscribers"] == 3


def test_robot_state_publisher_is_one_more_subscriber_where_it_is_started() -> None:
    values = {item.name: item.default for item in ARGUMENTS}
    assert LaunchRequest(values, {}, frames=True).parameters("simulation_node")["wait_for_subscribers"] == 2
    assert not LaunchRequest({**values, "source": "robot"}, {"source"}, frames=True).publishes_frames


def test_a_parameter_file_beats_the_launch_file_and_an_argument_beats_both(tmp_path: Path) -> None:
    file = params_file(tmp_path, inputs_reliable=False, use_sim_time=True, identified_parameters="mine.yaml", seed=3)
    by_file = request(params_file=file)
    assert "inputs_reliable" not in by_file.parameters("estimator_node")
    assert "identified_parameters" not in by_file.parameters("estimator_node")
    assert "seed" not in by_file.parameters("simulation_node")
    assert by_file.parameters("simulation_node")["publish_clock"] is True
    by_argument = request(params_file=file, identified_parameters="other.yaml", use_sim_time="false")
    assert by_argument.parameters("estimator_node")["identified_parameters"] == "other.yaml"
    assert by_argument.parameters("estimator_node")["use_sim_time"] is False


def test_the_robot_is_the_one_of_the_parameter_file(tmp_path: Path) -> None:
    original = request().robot.urdf_path
    assert original is not None
    urdf = tmp_path / "mine.urdf"
    urdf.write_bytes(original.read_bytes())
    chosen = request(params_file=params_file(tmp_path, robot={"urdf": str(urdf)}))
    assert chosen.robot.urdf_path == urdf
    assert chosen.parameters("estimator_node")["robot.urdf"] == str(urdf)


def test_a_real_robot_is_heard_although_it_publishes_best_effort() -> None:
    assert request().parameters("estimator_node")["inputs_reliable"] is True
    assert request(source="robot").parameters("estimator_node")["inputs_reliable"] is False


@pytest.mark.parametrize("node", NODE_FIELDS)
def test_every_parameter_that_is_passed_on_exists_and_has_its_type(node: str) -> None:
    everything = {item.name: item.default for item in ARGUMENTS if item.parameter}
    kinds = {item.name: item.kind for item in NODE_FIELDS[node]} | {"use_sim_time": bool, "robot.urdf": str}
    parameters = request(**everything).parameters(node)
    assert {name: type(value) for name, value in parameters.items()} == {name: kinds[name] for name in parameters}


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"rate": "fast"}, "rate:=fast is not a number"),
        ({"seed": "1.5"}, "seed:=1.5 is not a whole number"),
        ({"params_file": "nowhere.yaml"}, "params_file:=nowhere.yaml: there is no such file"),
        ({"source": "bag"}, "source:=bag needs bag:=PATH"),
        ({"robot": "nobody"}, f"the robots of friction_estimator are {choices(robot_names())}"),
    ],
)
def test_arguments_that_cannot_work_are_refused_before_anything_starts(given: dict[str, str], reason: str) -> None:
    with pytest.raises(ConfigError) as caught:
        request(**given)
    assert reason in str(caught.value)


def test_a_typing_error_in_the_parameter_file_is_named_before_anything_starts(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="did you mean 'observer'"):
        request(params_file=params_file(tmp_path, observr="momentum"))


def test_misspelt_arguments_are_named() -> None:
    near, far = unknown_arguments(["seed:=1", "scenaro:=walk", "colour:=red", "--debug"])[::-1]
    assert near == "biped.launch.py has no argument 'scenaro': did you mean 'scenario'?"
    assert far.startswith("biped.launch.py has no argument 'colour': its arguments are source, robot,")
