"""Motion of the joints from their readings: velocities, and noise, resolution and stamps of the sensors."""
