"""How often the truth lies within two of our own standard deviations."""
