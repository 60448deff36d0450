"""A measured external force is taken off: friction is that of the joints, whatever pushes the robot."""

import numpy as np
import pinocchio as pin
import pytest

from friction_estimator.api.identify import identify
from friction_estimator.api.validate import validate
from friction_estimator.errors import InputError
from friction_estimator.identification.joint_log import ExternalWrench
from test.identification.arm import COULOMB, JOINTS, URDF, VISCOUS, coulomb_viscous, move, rigid_torque

PERIOD = 0.01
FRAME = "hand"


@pytest.fixture(scope="module")
def pushed():
    """Columns of an arm whose hand is pushed with up to 60 N and 6 N m, in the axes of the base."""
    q, v, a = move(3, duration=20.0, period=PERIOD)
    time = np.arange(len(q)) * PERIOD
    phase = np.random.default_rng(1).uniform(0.0, 2.0 * np.pi, (6, 4))
    tones = np.sin(2.0 * np.pi * np.array([0.13, 0.31, 0.53, 0.79]) * time[:, None, None] + phase).mean(axis=2)
    wrench = tones * np.array([60.0, 60.0, 60.0, 6.0, 6.0, 6.0])
    model = pin.buildModelFromXML(URDF)
    data, frame = model.createData(), model.getFrameId(FRAME)
    external, own = np.empty_like(q), np.empty_like(wrench)
    for k, configuration in enumerate(q):
        jacobian = pin.computeFrameJacobian(model, data, configuration, frame, pin.LOCAL_WORLD_ALIGNED)
        rotation = pin.updateFramePlacement(model, data, frame).rotation
        external[k] = jacobian.T @ wrench[k]
        own[k] = np.append(rotation.T @ wrench[k, :3], rotation.T @ wrench[k, 3:])
    effort = rigid_torque((q, v, a)) + coulomb_viscous(v) - external
    effort += 0.05 * np.random.default_rng(2).normal(size=effort.shape)
    columns = {"time": time} | {f"position/{name}": q[:, k] for k, name in enumerate(JOINTS)}
    columns |= {f"effort/{name}": effort[:, k] for k, name in enumerate(JOINTS)}
    axes = ("x", "y", "z", "mx", "my", "mz")
    columns |= {f"sensor/{axis}": wrench[:, k] for k, axis in enumerate(axes)}
    columns |= {f"turning/{axis}": own[:, k] for k, axis in enumerate(axes)}
    return columns, {f"external/{name}": external[:, k] for k, name in enumerate(JOINTS)}


@pytest.fixture
def arm(tmp_path):
    path = tmp_path / "arm.urdf"
    path.write_text(URDF)
    return path


def saved(folder, columns, drop=(), name="run.npz"):
    path = folder / name
    np.savez(path, **{name: column for name, column in columns.items() if name.partition("/")[0] not in drop})
    return path


def test_friction_of_a_pushed_arm_is_that_of_the_joints_in_whatever_axes_the_force_is_given(pushed, arm, tmp_path):
    columns, external = pushed
    path = saved(tmp_path, columns)
    found = identify(path, arm, wrenches=[ExternalWrench(FRAME, "sensor", "base")])
    for k in range(len(JOINTS)):
        for place, truth in enumerate((COULOMB[k], VISCOUS[k])):
            assert abs(found.values[k, place] - truth) < 3.0 * found.sigma[k, place] < 0.2 * truth
    turning = identify(path, arm, wrenches=[ExternalWrench(FRAME, "turning")])
    np.testing.assert_allclose(turning.values, found.values, rtol=1e-9)
    given = identify(saved(tmp_path, columns | external, ("sensor", "turning"), "given.npz"), arm)
    np.testing.assert_allclose(given.values, found.values, rtol=1e-9)
    assert validate(found, path, arm, wrenches=[ExternalWrench(FRAME, "turning")]).scores[0].relative_error < 0.05


def test_a_force_that_is_not_used_is_named_and_a_wrong_place_is_refused(pushed, arm, tmp_path):
    path, warnings = saved(tmp_path, pushed[0]), []
    assert identify(path, arm, warn=warnings.append).scores[0].relative_error > 0.1
    assert any("'sensor', 'turning' are not used" in text for text in warnings)
    with pytest.raises(InputError, match="no columns foot/x.*'sensor', 'turning'"):
        identify(path, arm, wrenches=[ExternalWrench(FRAME, "foot")])
    with pytest.raises(InputError, match="acts on the frame 'toe'; the frames are .*'hand'"):
        identify(path, arm, wrenches=[ExternalWrench("toe", "sensor")])
