"""Method `friction_curve`: any law through measured friction (Egle 2021)."""
