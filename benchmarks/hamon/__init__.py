"""Tables I-IV of Hamon et al. 2010 on a simulated RX130L."""
