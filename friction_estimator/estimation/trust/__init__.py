"""When an estimate should not be believed, joint by joint and in words."""

from friction_estimator.estimation.trust.monitor import TrustEvidence, TrustMonitor
from friction_estimator.estimation.trust.verdict import ADVICE, Doubt, JointTrust, TrustFigures, in_words, judge

__all__ = [
    "ADVICE",
    "Doubt",
    "JointTrust",
    "TrustEvidence",
    "TrustFigures",
    "TrustMonitor",
    "in_words",
    "judge",
]
