"""Add a friction law of your own, let the estimator identify it, and compare it with the default law.

python examples/own_friction_law.py
"""

import numpy as np

import friction_estimator as fe

fe.register_law(
    fe.LinearFrictionLaw(
        "direction",  # Coulomb friction that differs between the directions, and viscous friction
        (
            fe.Term("coulomb_forward", fe.Shape.TANH, 0.02, side=fe.Side.FORWARD, coulomb=0.5),
            fe.Term("coulomb_backward", fe.Shape.TANH, 0.02, side=fe.Side.BACKWARD, coulomb=0.5),
            fe.Term("viscous", fe.Shape.LINEAR, unit="N m s/rad", viscous=1.0),
        ),
    )
)

walk = fe.simulate("suralp", duration=6.0)
for law in ("direction", "six_slope_load"):
    result = fe.replay(walk, fe.load_robot("suralp", {"identifier.law": law}))
    error = np.sqrt(np.nanmean((result.model - result.truth)[3000:] ** 2, axis=0))
    print(f"{law:15} RMS error of the law alone [N m]: {np.round(error, 2)}")
