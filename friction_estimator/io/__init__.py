"""Reading and writing: robots, identified parameters, recordings, rosbags, and exports for other programs."""
