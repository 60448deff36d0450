"""What went wrong since the start: plain counters that the node turns into diagnostics."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Health:
    """Counters and flags of one :class:`~friction_estimator.estimation.estimator.Estimator`.

    Attributes
    ----------
    frames : joint samples that became an estimate
    late : samples dropped because their stamp was older than one already used
    repeated : joint samples dropped because their stamp, or all positions while the joints move, stood still
    without_effort : joint samples that carried no motor torques
    gaps : times the joint-state clock jumped forward by more than ``synchronizer.reset_after``
    time_jumps : times the clock jumped back and the filters restarted
    imu_stale, foot_stale : which sensors are silent now
    wrench_sign_suspect : feet whose normal force points the wrong way, by name
    last_event : the newest time event in words, empty when there was none
    """

    frames: int = 0
    late: int = 0
    repeated: int = 0
    without_effort: int = 0
    gaps: int = 0
    time_jumps: int = 0
    imu_stale: bool = True
    foot_stale: dict[str, bool] = field(default_factory=dict)
    wrench_sign_suspect: tuple[str, ...] = ()
    last_event: str = ""
