"""The rigid body behind a recording: regressor, base parameters, real bodies."""
