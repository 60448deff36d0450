"""Least squares with honest error bars, validation and a verdict in words: shared by the methods."""
