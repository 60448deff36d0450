"""Method `motor`: friction and drive gain motor by motor behind a coupling (Guedelha et al. 2017)."""
