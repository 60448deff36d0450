"""What waits is used in order; only a node that is behind leaves joint samples out, and keeps the newest."""

from __future__ import annotations

import pytest

from friction_estimator.ros.input_queue import InputQueue


class Line:
    """A queue whose joint samples (numbers) arrive once a millisecond, and whose estimates take ``step`` seconds."""

    def __init__(self, leave_out: bool = True) -> None:
        self.time = self.step = 0.0
        self.joints: list[int] = []
        self.others: list[int] = []
        self.ages: list[float] = []
        self.arrived = 0
        self.queue = InputQueue(leave_out, now=lambda: self.time)
        self._joint = self.queue.receiver(self._estimate, joints=True)
        self._other = self.queue.receiver(self._take_other)

    def _estimate(self, raw: bytes, arrived: float) -> bool:
        self.joints.append(int(raw))
        self.time += self.step
        self.ages.append(self.time - 1e-3 * int(raw))
        return True

    def _take_other(self, raw: bytes, arrived: float) -> bool:
        self.others.append(int(raw))
        return False

    def run(self, seconds: float, step: float) -> None:
        """Fetch whatever has arrived, make one estimate, and so on."""
        self.step, end = step, self.time + seconds
        while self.time < end:
            if self.arrived == self.queue.used + self.queue.left_out:  # nothing waits
                self.time = max(self.time, 1e-3 * self.arrived)
            while 1e-3 * self.arrived <= self.time:
                self._other(str(self.arrived).encode())
                self._joint(str(self.arrived).encode())
                self.arrived += 1
            self.queue.look()
            self.queue.use()


def test_a_node_that_keeps_up_uses_all_in_order() -> None:
    line = Line()
    line.run(2.0, step=0.8e-3)
    line.run(0.1, step=0.5)  # a pause
    line.run(2.0, step=0.2e-3)
    line.queue.use_all()
    assert line.joints == list(range(line.arrived))
    assert line.queue.left_out == 0 and line.queue.used == line.arrived


def test_a_node_that_cannot_keep_up_uses_new_samples_in_order_and_counts_the_others() -> None:
    line = Line()
    line.run(6.0, step=2.5e-3)
    joints = line.joints
    assert joints == sorted(joints) and line.queue.used == len(joints)
    assert max(line.ages) < 2.0 and max(line.ages[-300:]) < 0.03
    assert max(after - before for before, after in zip(joints, joints[1:], strict=False)) <= 105  # milliseconds
    steps = [after - before for before, after in zip(joints[-300:], joints[-299:], strict=False)]
    assert sum(steps) / len(steps) == pytest.approx(2.5, abs=0.1) and max(steps) <= 4
    line.queue.use_all()
    assert line.queue.used + line.queue.left_out == line.arrived and line.joints[-1] == line.arrived - 1


def test_a_node_that_keeps_up_again_leaves_nothing_out_any_more() -> None:
    line = Line()
    line.run(4.0, step=2.5e-3)
    line.run(3.0, step=0.5e-3)
    before = line.queue.left_out
    line.run(0.1, step=0.5)
    line.run(3.0, step=0.5e-3)
    assert before > 0 and line.queue.left_out == before


def test_messages_of_other_sensors_are_all_used() -> None:
    line = Line()
    line.run(4.0, step=2.5e-3)
    line.queue.use_all()
    assert line.others == list(range(line.arrived))


def test_nothing_is_left_out_where_every_sample_counts() -> None:
    line = Line(leave_out=False)
    line.run(1.0, step=2.5e-3)
    line.queue.use_all()
    assert line.queue.left_out == 0 and line.joints == list(range(line.arrived))
