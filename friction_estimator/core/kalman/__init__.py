"""The calibrating Kalman stage: friction, its law, and the errors of model and sensors, limb by limb.

every frame     encoders ─► joint motion ─► regressor of the law ─► friction = law + mismatch, sigma
                                 │                │                        ▲
                                 │                ▼                        │
                                 ├────► disturbance observer ─► pushed? changed?
                                 ▼                                │        │
every window    window buffer ─► momentum, forces, columns ─► limb filter ─┘
"""

from friction_estimator.core.kalman.stage import KalmanFriction

__all__ = ["KalmanFriction"]
