"""MOB-Net: networks that learn the error of the momentum observer (Lim et al. 2024)."""
