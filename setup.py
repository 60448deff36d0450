import os
from glob import glob

from setuptools import find_packages, setup

PACKAGE = "friction_estimator"

# Nothing here may replace what an apt-installed ROS brings along: ROS itself, pinocchio and MuJoCo are extras.
EXTRAS = {
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
    "dynamics": ["pin>=3.0"],
    # compiles the numerical kernels; an extra, because without it they run as plain Python, and because numba takes the
    # numpy it was built for: next to the numpy and python3-numba of apt, pip would bring another one
    "compiled": ["numba>=0.60"],
    "simulation": ["mujoco>=3.3"],
    "bags": ["rosbags>=0.11,<0.12", "mcap>=1.2"],
    "report": ["plotly>=6.0"],
    "robots": ["example-robot-data>=6.0"],  # URDFs of config/robots/talos_legs.yaml, g1.yaml; 400 MB
    "demo": ["rich>=13.0"],
    "fleet": [
        "distributed>=2025.1",
        "pyarrow>=15.0",
        "fsspec>=2024.2",
        "importlib-metadata<10; python_version < '3.12'",  # of dask; later ones need a package without an author
    ],
    "learning": ["jax>=0.4.30", "optax>=0.2.2", "safetensors>=0.4"],  # only `train` needs jax and optax; 100 MB
    "onnx": ["onnx>=1.16"],  # only `train --onnx` needs it
    "test": ["pytest>=8.0", "pytest-xdist>=3.6", "hypothesis>=6.100", "pandas>=2.0", "polars>=1.0", "duckdb>=1.0"],
}
EXTRAS["test"] += EXTRAS["robots"]
NOT_IN_ALL = ("learning", "onnx")
EXTRAS["all"] = list(
    dict.fromkeys(requirement for name, extra in EXTRAS.items() if name not in NOT_IN_ALL for requirement in extra)
)


def files_of(folder):
    """Every file below a folder, as data_files wants them: one entry a folder."""
    return [
        (f"share/{PACKAGE}/{path}", [os.path.join(path, name) for name in names])
        for path, _, names in os.walk(folder)
        if names and "__pycache__" not in path
    ]


setup(
    name=PACKAGE,
    version="0.1.0",
    description="Live joint-friction estimation for walking robots",
    license="Apache-2.0",
    maintainer="friction_estimator maintainers",
    maintainer_email="maintainers@example.org",
    packages=find_packages(include=[PACKAGE, f"{PACKAGE}.*"]),
    package_data={"": ["py.typed", "*.html", "*.css", "*.js"]},
    data_files=[
        ("share/ament_index/resource_index/packages", [f"resource/{PACKAGE}"]),
        (f"share/{PACKAGE}", ["package.xml"]),
        (f"share/{PACKAGE}/launch", glob("launch/*.launch.py")),
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
