"""The functions and results behind the public names of the package, one file a function."""
