"""Parts of ``benchmarks/icub_base.py``."""
