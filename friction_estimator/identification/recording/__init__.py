"""From a recording to motion that can be trusted: repair, suspicions, zero-phase filters."""
