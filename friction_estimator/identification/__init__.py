"""Offline identification: friction, inertia and drive parameters from recorded joint signals."""
