"""Identification of the six-parameter law on a simulated walk, as in Egle 2021, sections 6.2.2 and 7.2."""
