"""Method `inverse_dynamics`: rigid body and friction of all joints in one least squares (Hamon et al. 2010)."""
