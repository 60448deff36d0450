"""What is printed in Tables I-IV of Hamon et al. 2010."""

from __future__ import annotations

MODELS = ("usual", "new, products apart")
_J, _MX = "Iyy joint_3 + Ia joint_3", "mx joint_3"
TABLE_I = {
    _J: (30.921, 0.46),
    _MX: (21.109, 0.04),
    "payload scale": (0.922, 0.15),
    "joint_3/coulomb": (39.890, 0.11),
    "joint_3/viscous": (29.429, 0.67),
    "joint_3/offset": (9.931, 0.39),
}
"""Value and relative standard deviation [%], under our names."""
TABLE_II = {
    f"a_m {_J}": (32.420, 0.40),
    f"a_m {_MX}": (22.204, 0.07),
    f"b_m {_MX}": (1.621, 1.55),
    "a_m known load": (0.942, 0.25),
    "b_m known load": (0.240, 1.72),
    f"a_g {_J}": (29.294, 0.47),
    f"a_g {_MX}": (19.432, 0.11),
    f"b_g {_MX}": (1.798, 1.43),
    "a_g known load": (0.915, 0.27),
    "b_g known load": (0.266, 1.59),
    "joint_3/beta_motor": (21.152, 0.34),
    "joint_3/beta_generator": (15.588, 0.78),
    "joint_3/viscous": (48.139, 0.33),
    "joint_3/offset": (9.950, 0.26),
}
TABLE_III = {MODELS[0]: (0.0733, 0.0737, 0.0863), MODELS[1]: (0.0484, 0.0401, 0.0881)}
"""All samples, slow, fast."""
TABLE_IV = {MODELS[0]: 0.0742, MODELS[1]: 0.0598}
"""Identified without payload."""
