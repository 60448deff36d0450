"""A fleet on two machines: the scheduler in one network namespace, its workers in another one behind a cable."""

# ruff: noqa: E402  (what the imports need may be missing)

from __future__ import annotations

import pytest

pytest.importorskip("distributed", reason="the extra 'fleet' is not installed")

import os
import shutil
import subprocess
import sys
from pathlib import Path

from friction_estimator.fleet.bag_task import ReplayTask, load_fleet_robots, process_bag
from friction_estimator.fleet.storage import find_bags, read_table

_ISOLATED = ["unshare", "--user", "--map-root-user", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]
_SCRIPT = r"""
python=$1 bags=$2 output=$3
unshare --net sleep infinity &
far=$!
until [ "$(readlink /proc/$far/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.05; done
beyond="nsenter --target $far --net"
ip link set lo up &&
    ip link add near type veth peer name far netns $far &&
    ip addr add 10.77.0.1/24 dev near && ip link set near up &&
    $beyond ip link set lo up && $beyond ip addr add 10.77.0.2/24 dev far && $beyond ip link set far up || exit 77
$python -m distributed.cli.dask_scheduler --host 10.77.0.1 --port 8786 &
until (echo >/dev/tcp/10.77.0.1/8786) 2>/dev/null; do kill -0 $! || exit 1; sleep 0.1; done
$beyond $python -m distributed.cli.dask_worker tcp://10.77.0.1:8786 --host 10.77.0.2 --nworkers 2 --nthreads 1 &
$python -m friction_estimator fleet replay "$bags" --robots "$bags/fleet.yaml" -o "$output" \
    --scheduler tcp://10.77.0.1:8786
"""


@pytest.mark.slow
def test_workers_in_another_network_give_the_rows_of_this_process(fleet_bags: Path, tmp_path: Path) -> None:
    if shutil.which("ip") is None or subprocess.run([*_ISOLATED, "true"], capture_output=True).returncode:
        pytest.skip("network namespaces need `ip` and Linux that lets users make them")
    bags = shutil.copytree(fleet_bags / "unit_2", tmp_path / "unit_2")
    shutil.copy(fleet_bags / "fleet.yaml", bags)
    there, here = str(tmp_path / "there"), str(tmp_path / "here")
    words = [*_ISOLATED, "bash", "-c", _SCRIPT, "bash", sys.executable, str(bags), there]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(words, capture_output=True, text=True, env=environment)
    if done.returncode == 77:
        pytest.skip(f"this Linux has no veth pairs: {done.stderr}")
    assert done.returncode == 0 and "2 bags finished" in done.stdout, done.stderr
    for bag in find_bags([str(bags)]):
        process_bag(bag.url, load_fleet_robots(bags / "fleet.yaml"), ReplayTask(here))
    assert read_table([there]).equals(read_table([here]))
