"""What stands between the tables of docs/results/egle.md."""

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

- **Timing of the torque decides.** With exact signals and the torque weighted as the integrator uses it, the fit is
  better than printed nearly everywhere. The torque as recorded begins at its stamp, so it is that of half a millisecond
  later, and multiplies the errors by about ten: where the friction steps by 2 N m within three milliseconds, the
  controller's torque follows it.
- **A user can have most of that** by knowing what the stamps mean: the mean of the torque before and after has a third
  of the errors of the torque as recorded, and medians below those printed. What is left is the simulation's: Euler's
  method in four steps a millisecond is an eighth of a millisecond off the mean, and no real robot is.
- **Is that a fair comparison?** The thesis does not say how its torques were timed. With the torque as recorded ours
  would be 0.99 % against its 0.94 %: the timing makes the difference, not the fit. Where ours stay larger in Table 6.2
  it is hip yaw, which moves least (offset 0.5 % instead of 0.3 %, slope 0.15 %), and v_s of one hip roll (0.58 %
  instead of 0.40 %). In Table 6.1 it is the right hip yaw and roll, which never leave the Stribeck region, and ankle
  pitch, 0.3 % where 0.1 % and less are printed.
- **Sideways is what makes rolls identifiable**, as in the thesis: straight ahead hip yaw, hip roll and ankle roll
  stay in the Stribeck region, and the fit says so by itself before it sees any target. The thesis' hip rolls (F_v ten
  times too large, though the curve fits) are such a case.
- **The attitude costs most.** With the attitude from the IMU instead of the true one (milliradians) the weight of the
  leg enters the friction; the thesis had the attitude of its simulation. The Kalman observer learns a law of its own,
  linear in its parameters, while the robot walks; what that law smooths shows in S, v_s and a.
- **Filters** bend the Stribeck part first: with L = 51 the error is 0.29 N m below 0.4 rad/s and 0.02 N m above. L =
  151 and the Butterworth filter of 10 Hz are alike below 0.4 rad/s; above it Savitzky-Golay is the better one, as in
  the thesis. Only the acceleration is filtered; the motor torque answers the step of the friction at once, and that
  is what bends. The lobes at the ends of a swing are the touch-down that half a window brings in.
- **Masses** shift the curve: 5 % of all masses by 0.23 N m, a quarter of the knee's Coulomb friction, and they set
  the branches 0.06 N m apart. **Moments of inertia** alone hardly shift it (25 %: 0.008 N m), but set the branches
  0.07 N m apart, as in the thesis. A shift cannot be told from an offset of the torque; branches can be told from
  friction, which has none. Heavier models shift our curve down and the thesis' up: its friction has the opposite
  sign.
"""
