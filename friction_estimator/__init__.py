"""Live joint-friction estimation for walking robots: base and foot sensors in, friction torque per joint out."""

__version__ = "0.1.0"
