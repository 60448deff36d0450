"""Figures 6.1-6.3 of Egle 2021 on our robot, and what the observer is worth on the built-in walk."""
