"""When an estimate should not be believed, joint by joint and in words."""

from friction_estimator.core.trust.evidence import TrustEvidence
from friction_estimator.core.trust.figures import TrustFigures
from friction_estimator.core.trust.monitor import TrustMonitor
from friction_estimator.core.trust.verdict import ADVICE, Doubt, JointTrust, in_words, judge

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
