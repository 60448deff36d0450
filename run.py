"""Start friction_estimator on a machine that has nothing but Python: makes ``.venv`` once, then runs in it.

    python3 run.py demo             the biped walks, a ROS 2 node estimates its joint friction
    python3 run.py test             the tests; further arguments go to pytest
    python3 run.py VERB ...         any other verb of friction_estimator; `python3 run.py --help` lists them

The first run installs what the demo needs; the first `test` adds what only the tests need. uv installs the packages,
and pip where uv is not to be had.

Standard library only, and written for any Python 3 so that an old one can say which versions are needed.
"""

import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Callable, Dict, List, NoReturn

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
DEMO = ROOT / "requirements" / "demo.txt"  # packages of all verbs that the demo leads to
TEST = ROOT / "requirements" / "test.txt"  # what the tests need beyond these
UV = ROOT / "requirements" / "uv.txt"
SETUP = ROOT / "setup.py"
OWNER = VENV / ".made_by_run_py"  # written first: this folder is ours to delete
DEMO_READY = VENV / ".demo_ready"  # written when the pinned packages are in, holds their fingerprint
TEST_READY = VENV / ".test_ready"
READY = VENV / ".ready"  # written last
LOG = VENV / "install.log"
UV_FOLDER = VENV / "uv"  # removed after the installation, like its downloads
CACHE = VENV / "downloads"
LINE_PERIOD = 5.0  # between two lines of progress where the output is no terminal [s]

VERSIONS = ((3, 12), (3, 13), (3, 11), (3, 14))  # CPython with wheels for every requirement, preferred first
MINIMUM_GLIBC = (2, 28)

# A sourced ROS, an active environment or a wrapper of pip must not reach into ours. Without bytecode every process of
# the demo and of the tests would compile the package again.
FOREIGN_VARIABLES = (
    "AMENT_CURRENT_PREFIX AMENT_PREFIX_PATH CMAKE_PREFIX_PATH COLCON_CURRENT_PREFIX COLCON_PREFIX_PATH CONDA_PREFIX "
    "PIP_PREFIX PIP_REQUIRE_VIRTUALENV PIP_ROOT PIP_TARGET PYTHONDONTWRITEBYTECODE PYTHONHOME PYTHONPATH "
    "PYTHONSAFEPATH RMW_IMPLEMENTATION ROS_DISTRO VIRTUAL_ENV _ROS_WHEELS_BOOTSTRAP_COMPLETE __PYVENV_LAUNCHER__"
).split()


def main(arguments: List[str]) -> NoReturn:
    """Prepare the environment if need be, and become the wanted command."""
    if not arguments:
        print(__doc__)
        sys.exit(2)
    environment = clean_environment(dict(os.environ))
    prepare(environment, arguments[0] == "test")
    environment["PATH"] = "{}{}{}".format(PYTHON.parent, os.pathsep, environment.get("PATH", os.defpath))
    environment["VIRTUAL_ENV"] = str(VENV)
    if "HOME" not in environment:
        environment.setdefault("ROS_LOG_DIR", str(VENV / "log"))
    if arguments[0] == "test":
        os.chdir(str(ROOT))
        command = [str(PYTHON), "-m", "pytest", *arguments[1:]]
    else:
        command = [str(PYTHON), "-m", "friction_estimator", *arguments]
    sys.stdout.flush()
    os.execve(command[0], command, environment)


def clean_environment(environment: Dict[str, str]) -> Dict[str, str]:
    """Return the environment without what would lead Python, pip or the loader to foreign packages."""
    prefixes = [
        prefix
        for name in ("AMENT_PREFIX_PATH", "COLCON_PREFIX_PATH", "CMAKE_PREFIX_PATH")
        for prefix in environment.get(name, "").split(os.pathsep)
        if prefix
    ]
    prefixes.append(sys.prefix if sys.prefix != sys.base_prefix else str(VENV))
    libraries = [
        folder
        for folder in environment.get("LD_LIBRARY_PATH", "").split(os.pathsep)
        if folder and not any((folder + os.sep).startswith(prefix.rstrip(os.sep) + os.sep) for prefix in prefixes)
    ]
    cleaned = {name: value for name, value in environment.items() if name not in FOREIGN_VARIABLES}
    cleaned.pop("LD_LIBRARY_PATH", None)
    if libraries:
        cleaned["LD_LIBRARY_PATH"] = os.pathsep.join(libraries)
    cleaned["PIP_USER"] = "0"  # also overrides a configuration file
    return cleaned


def prepare(environment: Dict[str, str], tests: bool) -> None:
    """Make ``.venv`` unless it is there, whole and up to date; ``tests``: with the packages of the tests."""

    def done() -> bool:
        return is_ready(DEMO_READY, DEMO) and is_ready(READY, SETUP) and (not tests or is_ready(TEST_READY, TEST))

    if done():
        return
    check_platform()
    descriptor = lock()
    started = time.monotonic()
    try:
        if done():  # another run.py has made it while this one waited
            return
        if not is_ready(DEMO_READY, DEMO):
            python = find_python(environment)
            make_room()
            make_venv(python, environment)
            install_packages(DEMO, "the demo", environment)
            DEMO_READY.write_text(fingerprint(DEMO))
        if tests and not is_ready(TEST_READY, TEST):
            install_packages(TEST, "the tests", environment)
            TEST_READY.write_text(fingerprint(TEST))
        if not is_ready(READY, SETUP):
            install_this(environment)
            compile_kernels(environment)
            READY.write_text(fingerprint(SETUP))
        say("ready after {:.0f} s; from now on this step is skipped".format(time.monotonic() - started))
    finally:
        os.close(descriptor)


def fingerprint(path: Path) -> str:
    """What an installed state depends on: a file, where this folder lies, and which Python the environment uses."""
    digest = hashlib.sha256(path.read_bytes())
    digest.update(os.fsencode(str(ROOT)))
    digest.update(os.fsencode(os.path.realpath(str(PYTHON))))
    return digest.hexdigest()


def is_ready(marker: Path, path: Path) -> bool:
    """Tell whether the step behind a marker was finished, nothing changed since, and its Python still exists."""
    try:
        return marker.read_text() == fingerprint(path) and os.access(str(PYTHON), os.X_OK)
    except OSError:
        return False


def lock() -> int:
    """Keep a second run.py waiting while the first one installs; the lock ends with the process."""
    import fcntl  # not on Windows, where check_platform must get its turn first

    descriptor = os.open(str(ROOT), os.O_RDONLY)
    os.set_inheritable(descriptor, True)  # a pip that outlives a killed run.py keeps the lock
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        say("waiting for another run.py that prepares the environment")
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    return descriptor


def check_platform() -> None:
    """Refuse machines for which the ROS 2 wheels do not exist."""
    system, machine = platform.system(), platform.machine()
    libc, version = platform.libc_ver()
    numbers = tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
    if (system, machine) == ("Linux", "x86_64") and libc == "glibc" and numbers >= MINIMUM_GLIBC:
        return
    fail(
        "this set-up needs Linux on x86_64 with glibc {} or newer, because ROS 2 comes as wheels; this is {} on {}{}. "
        "With ROS 2 Jazzy installed, build the package with colcon instead (README).".format(
            ".".join(map(str, MINIMUM_GLIBC)), system, machine, " with {} {}".format(libc, version) if libc else ""
        )
    )


def find_python(environment: Dict[str, str]) -> str:
    """Path of a Python for which all wheels exist: this one, else one of PATH."""
    base = getattr(sys, "_base_executable", None) or sys.executable
    names = ["python{}.{}".format(*version) for version in VERSIONS]
    for candidate in [base, *(shutil.which(name, path=environment.get("PATH")) for name in names)]:
        if candidate and supported(candidate, environment):
            return candidate
    fail(
        "Python {} is not supported: install one of CPython {} (for example `sudo apt install python3.12-venv`) "
        "and run this again; it is found on PATH by itself.".format(
            platform.python_version(), ", ".join("{}.{}".format(*version) for version in sorted(VERSIONS))
        )
    )


def supported(python: str, environment: Dict[str, str]) -> bool:
    """Tell whether a Python starts and is one of the supported versions (PATH may hold stubs that do not start)."""
    code = (
        "import sys, sysconfig, platform; print(*sys.version_info[:2], platform.python_implementation(), "
        "sysconfig.get_config_var('Py_GIL_DISABLED') or 0)"
    )
    try:
        answer = subprocess.run(
            [python, "-c", code], env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False
        )
    except OSError:
        return False
    words = answer.stdout.decode().split()
    return answer.returncode == 0 and words in [[str(major), str(minor), "CPython", "0"] for major, minor in VERSIONS]


def make_room() -> None:
    """Remove a half-made or outdated environment; a ``.venv`` that is not ours is renamed, not lost."""
    if OWNER.is_file() and not VENV.is_symlink():
        say("an earlier preparation did not finish or is out of date: starting anew")
        shutil.rmtree(str(VENV))
    elif os.path.lexists(str(VENV)):
        backup = ROOT / ".venv.backup-{}".format(time.strftime("%Y%m%d-%H%M%S"))
        say("a .venv that run.py did not make was there: renamed to {}".format(backup.name))
        VENV.rename(backup)


def make_venv(python: str, environment: Dict[str, str]) -> None:
    """Make an empty environment with pip."""
    say("making {} with {}".format(VENV, python))
    VENV.mkdir()
    OWNER.write_text("run.py may delete this folder\n")
    made = quiet([python, "-m", "venv", str(VENV)], environment)
    if made.returncode == 0:
        return
    # Debian and Ubuntu split ensurepip off into python3-venv; a pip of the system can stand in for it
    bare = quiet([python, "-m", "venv", "--without-pip", "--clear", str(VENV)], environment)
    OWNER.write_text("run.py may delete this folder\n")
    pip = [python, "-m", "pip", "--python", str(PYTHON), "install", "--disable-pip-version-check", "pip"]
    if bare.returncode or quiet(pip, environment).returncode:
        print(made.stdout.decode(errors="replace").strip(), file=sys.stderr)
        fail("this Python cannot make environments: on Debian or Ubuntu, `sudo apt install python3-venv`, then again")


def install_packages(requirements: Path, purpose: str, environment: Dict[str, str]) -> None:
    """Install pinned packages; their list is complete, so there are no dependencies to search for."""
    pins = re.findall("^([a-z0-9.-]+)==", requirements.read_text(), re.MULTILINE)
    total = len(set(pins))
    say("installing {} packages of {}, once".format(total, purpose))
    uv = find_uv(environment)
    pinned = ["--no-deps", "--require-hashes", "-r", str(requirements)]
    if uv:
        command = [uv, "pip", "install", "--python", str(PYTHON), "--cache-dir", str(CACHE), *pinned]

        def downloaded() -> str:
            return "{} of {} packages downloaded".format(len(list(CACHE.glob("archive-v*/*"))), total)

        if follow(command, environment, downloaded):
            say("uv could not install them (its reason is in {}): pip tries".format(LOG))
            uv = ""
    if not uv:
        pip_install(pinned, environment, total)
    # headers are a fifth of all that the packages bring along, and only C++ compilers read them
    for folder in (UV_FOLDER, CACHE, VENV / "include", *VENV.glob("lib/python*/site-packages/cmeel.prefix/include")):
        shutil.rmtree(str(folder), ignore_errors=True)


def find_uv(environment: Dict[str, str]) -> str:
    """Path of uv, which installs several times faster than pip; empty where pip cannot install it."""
    options = ["--target", str(UV_FOLDER), "--no-deps", "--only-binary", ":all:", "--require-hashes", "-r", str(UV)]
    got = quiet([str(PYTHON), "-m", "pip", "install", "-q", "--no-compile", *options], environment)
    return "" if got.returncode else str(UV_FOLDER / "bin" / "uv")


def install_this(environment: Dict[str, str]) -> None:
    """Install this package such that the environment runs the code of this folder."""
    pip_install(["--no-deps", "--no-build-isolation", "-e", str(ROOT)], environment, 1)


def compile_kernels(environment: Dict[str, str]) -> None:
    """Compile the numerical kernels of the estimator, so that no command has to wait for it later."""
    say("compiling the numerical kernels, once")
    command = [str(PYTHON), "-m", "friction_estimator", "compile"]
    if subprocess.run(command, env=environment, cwd=str(ROOT), stdout=subprocess.DEVNULL, check=False).returncode:
        fail("the numerical kernels cannot be compiled; the reason stands above")


def pip_install(arguments: List[str], environment: Dict[str, str], total: int) -> None:
    """Run `pip install`, and end with the last lines of its log when it fails."""
    command = [str(PYTHON), "-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--progress-bar=off"]

    def collected() -> str:
        return "{} of {} packages".format(LOG.read_text(errors="replace").count("\nCollecting "), total)

    if follow(command + arguments, environment, collected):
        tail = LOG.read_text(errors="replace").splitlines()[-15:]
        print("\n".join(["", *tail]), file=sys.stderr)
        fail("pip failed (the whole log is in {}); check the network and run this again".format(LOG))


def follow(command: List[str], environment: Dict[str, str], progress: Callable[[], str]) -> int:
    """Run a command into the log and show its progress: in one line of a terminal, else a line every few seconds."""
    terminal = sys.stdout.isatty()
    with LOG.open("ab") as log:
        process = subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, close_fds=False
        )
        while True:
            try:
                code = process.wait(0.2 if terminal else LINE_PERIOD)
                break
            except subprocess.TimeoutExpired:
                text = "\r\033[K{}" if terminal else "run.py: {}\n"
                print(text.format(progress()), end="", flush=True)
    if terminal:
        print("\r\033[K", end="", flush=True)
    return code


def quiet(command: List[str], environment: Dict[str, str]) -> "subprocess.CompletedProcess[bytes]":
    """Run a command without showing its output."""
    return subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)


def say(message: str) -> None:
    """Tell the user what happens."""
    print("run.py: " + message, flush=True)


def fail(message: str) -> NoReturn:
    """End with one clear line."""
    print("run.py: " + message, file=sys.stderr, flush=True)
    sys.exit(1)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except KeyboardInterrupt:
        fail("interrupted; the next run starts the preparation anew")
    except OSError as problem:
        fail(str(problem))
