"""Least squares with standard deviations for correlated residuals, validation and findings: shared by the methods."""
