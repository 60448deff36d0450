"""Live views of a robot and its friction, each in a thread that drops frames instead of waiting."""
