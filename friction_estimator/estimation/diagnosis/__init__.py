"""What is wrong: faults of sensors, and joints whose friction should not be trusted."""
