"""Simulated motors behind couplings, moved by hand and driven: does what went in come out (Guedelha et al. 2017)?"""
