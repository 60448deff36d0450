"""The calibrating Kalman stage: friction, its law, and the errors of model and sensors, limb by limb."""
