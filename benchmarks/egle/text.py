"""What stands between the tables of docs/egle.md."""

INTRODUCTION = """\
# Identification of friction on a walking robot

Egle 2021, section 6.2.2 and chapter 7, with `friction_curve`. Made by `{command}`.

The robot walks in MuJoCo with single supports of 0.8 s: straight ahead, 0.2 m a footprint (0.3 m for the size of TORO),
and sideways to both sides, 0.16 m with each step of the leading foot (0.25 m). Every leg joint has the friction of
eq. 3.5 with the parameters of the tables; sensors are exact. Hip pitch and yaw get F_c = tau_os = 0.75: the tables
print 0.8, but their own errors in percent belong to 0.75. Friction is estimated in the swing of each leg, without 0.1 s
at both ends, and eq. 3.5 is fitted by plain least squares (eq. 6.4) from many starts.

The tables are made with the true attitude and central differences of the positions (eq. 6.2). A torque is recorded when
it begins and acts for a millisecond, so a difference about a stamp has to do with the torque before and the one after;
both are weighted as the integrator of the simulation uses them (three to five in four steps a millisecond), and the
averaging of the differences over their neighbours is taken out.

In the tables the errors are in percent of what was injected, ours before the printed ones; bold where ours is larger,
in brackets where the fit itself says that the data does not show the parameter.
"""

VARIANTS = """\
## The same from other estimates of the friction

Median of the 72 errors of each table (ours / printed), how many are no worse than printed, and how many parameters the
fit marks as not identifiable. The Kalman observer also measures in stance; a constant offset of the torque is an error
of calibration to it, so what it takes for calibration is added before the fit.
"""

FILTERS = """\
## Figure 7.2: what filters do to the curve

Right knee, straight walk, true attitude. Only the measured acceleration is filtered, as in the thesis.

![Friction of the right knee over its velocity, by filter](images/egle_filters.png)
"""

INERTIAS = """\
## Figures 7.5 and 7.6: wrong inertial parameters

The simulation is unchanged; all bodies of the estimator's model are scaled. The shift is the mean error of the curve,
the distance that between its branches of rising and falling speed.

![Friction of the right knee over its velocity, by scale of masses and of moments of inertia](images/egle_inertias.png)
"""

READING = """\
## What it says
"""
