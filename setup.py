"""Installation by ament_python and pip: modules, entry points, and the data files of a wheel."""

import os
import re
from glob import glob

from setuptools import find_packages, setup

PACKAGE = "friction_estimator"
with open(os.path.join(PACKAGE, "__init__.py"), encoding="utf-8") as file:
    VERSION = re.search('^__version__ = "(.*)"$', file.read(), re.MULTILINE)[1]

# Nothing here may replace what an apt-installed ROS brings along: ROS itself, pinocchio and numba are extras.
EXTRAS = {
    # A robot needs this and nothing else. Extras, because next to numpy, pinocchio and numba of apt, pip would bring
    # others; without numba the kernels run as plain Python.
    "robot": ["pin>=3.0", "numba>=0.60"],
    "ros": [  # real ROS 2 Jazzy as wheels, for machines without a ROS installation; pinned, or pip searches for minutes
        "ros-rclpy[fastrtps]==7.1.6",
        "ros-std-msgs==5.3.6",
        "ros-std-srvs==5.3.6",
        "ros-sensor-msgs==5.3.6",
        "ros-geometry-msgs==5.3.6",
        "ros-nav-msgs==5.3.6",
        "ros-diagnostic-msgs==5.3.6",
        "ros-visualization-msgs==5.3.6",
    ],
    "simulation": ["mujoco>=3.3"],
    "bags": ["rosbags>=0.11,<0.12", "mcap>=1.2"],
    "report": ["plotly>=6.0"],
    "terminal": ["rich>=13.0", "argcomplete>=3.0"],  # progress, tables and tab completion
    "plot": ["matplotlib>=3.8", "pandas>=2.0"],  # figures and data frames in notebooks
    "rerun": ["rerun-sdk>=0.24"],
    "foxglove": ["foxglove-sdk>=0.10"],
    "robots": ["example-robot-data>=6.0"],  # URDFs of most robots of config/robots; 400 MB
    "fleet": [
        "distributed>=2025.1",
        "pyarrow>=15.0",
        "importlib-metadata<10; python_version < '3.12'",  # of dask; later ones need a package without an author
    ],
    "training": ["jax>=0.4.30", "optax>=0.2.2", "safetensors>=0.4"],  # only `train` needs jax and optax; 100 MB
    "onnx": ["onnx>=1.16"],  # only `train --onnx` needs it
}


def together(*extras):
    """Requirements of several extras."""
    return [requirement for extra in extras for requirement in EXTRAS[extra]]


EXTRAS["demo"] = together("robot", "ros", "simulation", "bags", "report", "terminal")
EXTRAS["test"] = together("demo", "robots", "fleet", "plot", "rerun", "foxglove") + [
    "pytest>=8.0",
    "pytest-xdist>=3.6",
    "hypothesis>=6.100",
    "polars>=1.0",
    "duckdb>=1.0",
]


def files_of(folder):
    """Every file below a folder, as data_files wants them: one entry a folder."""
    return [
        (f"share/{PACKAGE}/{path}", [os.path.join(path, name) for name in names])
        for path, _, names in os.walk(folder)
        if names and "__pycache__" not in path
    ]


setup(
    name=PACKAGE,
    version=VERSION,
    description="Live joint-friction estimation for walking robots",
    license="Apache-2.0",
    maintainer="friction_estimator maintainers",
    maintainer_email="maintainers@example.org",
    packages=find_packages(include=[PACKAGE, f"{PACKAGE}.*"]),
    package_data={"": ["py.typed", "*.html", "*.css", "*.js", "*.hpp"]},
    data_files=[
        ("share/ament_index/resource_index/packages", [f"resource/{PACKAGE}"]),
        (f"share/{PACKAGE}", ["package.xml"]),
        (f"share/{PACKAGE}/launch", glob("launch/*.launch.py")),
        (f"include/{PACKAGE}", glob(f"{PACKAGE}/control/include/{PACKAGE}/*.hpp")),
        *files_of("config"),
        *files_of("urdf"),
    ],
    python_requires=">=3.11",
    install_requires=["numpy>=1.26", "scipy>=1.11", "pyyaml>=6.0"],
    extras_require=EXTRAS,
    zip_safe=False,
    entry_points={
        "console_scripts": [
            f"{PACKAGE} = {PACKAGE}.cli.main:main",
            f"estimator_node = {PACKAGE}.ros.executables:estimator_node",
            f"simulation_node = {PACKAGE}.ros.executables:simulation_node",
            f"replay_node = {PACKAGE}.ros.executables:replay_node",
            f"recorder_node = {PACKAGE}.ros.executables:recorder_node",
        ],
    },
)
