"""Samples of the sensors to frames: checks of their values, and synchronisation."""
