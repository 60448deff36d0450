"""Methods `friction_curve` and `motor`: laws through measured friction, or through torques behind the transmission."""
