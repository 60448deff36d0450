"""What to move before recording."""
