"""The words of docs/kalman.md; the numbers come from the runs."""

from __future__ import annotations

DESIGN = """\
# The Kalman stage: design and study

Made by `{command}`; 60 s more for the last table. `observer: kalman`, code in `estimation/kalman/`.

## Design

**One limb, one filter.** Seen from the IMU on the root link, gravity minus base acceleration is minus the measured
specific force, so the joint rows of the momentum balance need neither attitude nor base velocity, and only joints of
the same branch of the tree couple. Over a window of length T (10 ms)

    p(t+T) = p(t) + T (tau + C^T v - g + J^T F - friction - G c) + noise        (momentum, Lim et al. 2024, eqs. 4-10)
    friction = Phi(dq) theta + delta
    delta(t+T) = exp(-T/0.2 s) delta(t) + noise                                   (what the law misses)
    theta(t+T) = theta(t) + noise, c(t+T) = c(t) + noise                         (wear, temperature, drift)

with the state `[p, delta, theta, c]`: momentum, mismatch, law, calibration ({states} numbers for a leg of the biped).
`c` are link masses and centres of mass, force-sensor biases and gains, torque gains and accelerometer bias, each with
a prior and each acting as a torque linear in its size. The measurement is `p` at the end of the window, from joint
velocities fitted to the readings around it and from the gyroscope. It holds in stance and in swing alike, with the
measured foot wrench in both; there is no phase logic in the filter.

**White noise where it arises.** The readings around the ends of windows belong to one end only, so the noise of `p`
is white from window to window; torque, wrench and specific force enter with their mean over the window. A low-pass on
residual and regressors, as a momentum observer has it, is not needed. Columns that multiply noisy readings (gains of
torque and force sensors) use the window *before*: otherwise the noise of column and force would correlate, and the
gains drift. What shakes faster than it is sampled (a chattering joint shakes the trunk) is missing from these means as
noise is: wrench and specific force count with the scatter of their second differences, joint velocities and gyroscope
with their deviation from a straight line, where that is clearly larger than their noise.

**What is not white.** A joint chatters in phase with the sampling, for a tenth of a second or so, and all that time
the readings miss the same. The error of a velocity, and of the friction that the law says there, lasts as long. Both
count with their variance times 0.1 s over the length of the window, so that over many windows they leave as much
uncertainty as they do. Counted as white they pulled masses and law after them: links were up to three sigma off and
the accelerometer four where nothing was wrong, and in `friction_load` with `paper_std` sensors 0.82 of the errors of
hip pitch in swing were inside their 95 % interval, now 0.98 (22 s, one seed; `clean` sensors, hip pitch in swing 0.72
to 0.96, hip roll 0.21 to 0.11 N m, knee 0.21 to 0.17; `friction_stiction` with `clean` sensors, knee in stance 0.80
to 0.97).

**Wrong links in time.** The columns of masses and centres of mass hold the mean acceleration over the window. That of
the filters is late by as much as it is smooth, which with exact sensors was most of the error (10 % and 5 mm wrong:
hip pitch in swing 0.16 N m, now 0.02). That of the window's readings alone is in time, but its noise is also that of
the innovation and pulls the masses: with the noise of `paper_std` it made errors four times as large. So the readings
count as far as they differ from the filters by clearly more than their noise (`estimation/kalman/window_dynamics.py`).
Friction that depends on the load goes with masses times accelerations and is harder to tell from wrong links then: in
`friction_load` errors of hip pitch in swing are about 5 % larger than with late columns.

**Turns.** A window is opened in one frame, and in each of the next frames one limb uses it; what they learned is out
when the last one is done. No frame bears the work of all limbs.

**Every frame** a bank of stationary motion filters gives the joint velocities: interacting multiple models, nine
whose acceleration wanders (white jerk) and five whose velocity does (white acceleration), for joints that dry
friction holds back. The published friction is the law there, averaged over the velocity's uncertainty by quadrature,
plus `delta`; while a limb stands and its velocity is too uncertain to tell the sign, the friction of the instant from
FBSE is weighed in. That of a foot which lands, lifts off or chatters is left out: it is no firm ground, and its
errors are newton metres.

**Guards**
- *Scale.* Nothing tells a common scale of all torques, masses and forces from the scale of friction. By convention
  the motor torques are right on average: the prior of their gains has no variance along their sum, and the filter
  keeps it.
- *Blows.* A window whose innovation is too large lets the momentum alone jump: landings teach nothing. When such
  windows follow each other and agree in direction, and no foot lands or lifts off, friction itself has changed: law
  and mismatch are opened up.
- *Pushes.* An observer of the external torque runs beside; while it sees a push the limb skips its windows.
- *Bounds.* Coulomb and viscous friction of a passive joint are not negative. The state is kept within one sigma of
  these bounds, and what is published is within them, moved in the metric of the covariance.
- *Feet in the air* are weighed: the sensor reads its bias.
- *Load.* Sigma holds a thousandth of the motor torque (`kalman.load_error`) for what timing and elasticity spoil.

**In hindsight** (`replay --smooth [SECONDS]`, `estimation/kalman/smoother.py`). Velocities first, from the filters with
white jerk alone and without interaction: each of them is stationary, so its Rauch-Tung-Striebel smoother has one
constant gain; the bank is weighed by the readings before and after. The same stage then runs on these velocities, its
filters write down what happens to them, and a backward sweep (modified Bryson-Frazier form) goes through the records.
Rauch-Tung-Striebel would invert P, which is singular by the convention above; this form inverts the 6x6 innovation
only. A move to a bound counts as knowledge, which was as true before. Every estimate sees at least the given time
ahead, 2 s unless told; `inf` is the whole recording, and with 20 s of walking no better. The external torque is not
smoothed.

## Joints that share motors

Two motors behind an ankle, or three in a torso, put friction of each into several joints; joint by joint it is no
function of the velocity. With `robot.coupling`
([identification.md](identification.md#motors-behind-a-coupling-motor)) law and mismatch are the motors', and
everything else stays in the joints, where links, feet and encoders are (`robot/transmission.py`, `S = T^-T`):

    friction = S (Phi(S^T dq, S^-1 tau) theta + delta)

The columns of the limb's filter carry S; sigma of a joint takes the whole covariance of the motors that act on it.
Errors of the motors' velocities count as independent in the quadrature, which they are for two motors with a
symmetric T. The printed methods take `S^-1` of what they measure. `F_c` and `F_v` on the topics are those of a joint
that moves alone: `|S| F_c` and `S^2 F_v`, entry by entry. Passivity is judged at the motors: friction of one of them
may well drive a joint. Motors that move joints of two limbs are refused. Where nothing is coupled not a bit of any
estimate changes.

A walk of the biped with two motors behind each ankle, 8 s with sensors of the level `paper`, RMS errors over the
second half against a friction of 1.11 N m (`python benchmarks/coupled_ankles.py`):

| observer | learned | ankles [N m] | law alone [N m] | error^2 / sigma^2 | other joints [N m] |
|---|---|---|---|---|---|
| kalman | joint by joint | 0.204 | 0.248 | 2.76 | 0.343 |
| kalman | motor by motor | 0.097 | 0.117 | 0.39 | 0.122 |
| kalman, smoothed | joint by joint | 0.156 | 0.231 | 4.87 | 0.331 |
| kalman, smoothed | motor by motor | 0.075 | 0.074 | 1.18 | 0.087 |
| fbse | joint by joint | 0.396 | 0.465 | 0.91 | 0.537 |
| fbse | motor by motor | 0.192 | 0.324 | 0.70 | 0.537 |

Friction that the law of a joint cannot say spoils the whole leg: the filter looks for it in links and sensors.

## What the parts are worth

Walk of the built-in biped, {duration:g} s, errors after 6 s, both legs together: hip yaw, roll, pitch, knee, ankle
pitch, roll. RMSE in N m.
"""

READING = """\

- **Velocity is what is missing at high noise.** With `paper` noise (0.045 rad/s, 0.3 mrad) the smoother leaves a half
  to a quarter of most errors, and nearly all of that comes from smoothed velocities. Learning from smoothed
  velocities while the published friction uses the live one brings next to nothing (hip yaw in stance 0.130 N m as
  before, hip roll 0.114 instead of 0.124, both without the friction of the instant): the law is learned well enough
  live, it is the velocity at which it is asked that is uncertain. With `paper_std` noise the live stage is near the
  smoother.
- **The bank of motion filters**: readings as they come make errors 1.7 to 15 times as large, and no single filter
  does as well at all levels.
- **Calibration** decides everything with `realistic` sensors: without it errors are 24 to 36 times as large. Wide
  priors cost little where there is nothing to calibrate: those of the datasheet, with the masses known, gain 6 % at
  most.
- **The mismatch** costs up to a factor of two on this walk, whose friction never changes and nearly fits the law.
  Without it sigma lies (a fifth of the errors are outside their interval), and what a law cannot say has nowhere to
  go.
- **Laws.** The load columns cost 3 % at most. Three slopes are a fifth to two fifths behind where velocities are known
  well, and not at all at `paper`; Coulomb-viscous friction alone has up to 3.7 times the error and a sigma that is too
  small.
- **Windows** of 5 or 20 ms are as good as those of 10 ms to 6 %, on this walk, since errors that last longer than a
  window are not counted as white. Short ones notice blows and changes earlier, and see more of a jump of friction.
- **Sharp dry friction.** Of the six tangents the sharpest (2 mrad/s) halves the errors where friction jumps:
  `friction_load` hip pitch 0.65 to 0.40 N m in stance and 0.59 to 0.33 in swing, `friction_stiction` knee 0.26 to
  0.12 (with five tangents); this walk, whose friction is soft, does not mind. Before the scatter of the specific
  force counted, hip roll and knee had 1.13 and 1.35 N m in swing under `friction_load`, not 0.35 and 0.42: shaken
  windows were taken for blows and changes of friction.
- **Where errors come from at `paper`**, hip yaw, roll, pitch, 22 s, one seed, with three Gauss-Hermite nodes. In
  stance 0.093 0.119 0.157 N m, of which the law that was learned, asked at the true velocity, makes 0.037 0.105
  0.111, and the true law at the live velocity, averaged over its Gaussian, 0.146 0.105 0.146. In swing 0.159 0.105
  0.192; 0.040 0.098 0.108; 0.153 0.084 0.161. The true law is thus a bound of this bank of filters: no better
  learning gets hip yaw below 0.15 in swing (with interacting models 0.14), where it rests for a fifth of a second
  below 10 mrad/s, known to 5. In stance the friction of the instant goes further: FBSE says it to 0.16 N m at 1 kHz
  for hip yaw, but to 0.9 only for hip roll and pitch. Passivity as a bound at several velocities, not for F_c and F_v
  alone, brings nothing.
- **What no law can reach.** The true law, asked at the live velocity and averaged over its Gaussian, is a bound of
  every estimate that a law makes. With the interacting models it has, two seeds: at `paper` hip yaw in swing 0.140
  and 0.152 N m (asked 0.14, measured here 0.138 and 0.177), hip roll in stance 0.101 and 0.113 (asked 0.11, measured
  0.104 and 0.116), hip pitch in swing 0.150 and 0.152 (asked 0.19, measured 0.172 and 0.160). In `friction_load` with
  `paper_std` sensors hip yaw in swing has 0.20 of the friction's RMS (asked 0.12, measured 0.18): friction of 2 N m
  turns round within milliseconds at velocities of 1 to 2 mrad/s, which are read with 2 mrad/s of noise. Stance is
  that of the true contact here, with feather touches; the page of errors counts phases by the contact detector.
- **Nodes.** Seven Gauss-Hermite nodes instead of three: the same walk has 0.088 0.112 0.149 in stance and 0.157 0.101
  0.182 in swing (thirteen: 0.088 0.109 0.149, 0.156 0.099 0.180). Under `friction_load` hip roll in stance goes from
  0.433 to 0.384 and ankle roll from 0.093 to 0.102 (seed 1; 0.386 to 0.373 and 0.107 to 0.106 with seed 0), the rest
  stays within 4 %. Seven velocities of equal probability do as well at `paper`, but none is further out than 1.6
  sigma, so that too little is seen of a sign that may be wrong: hip roll has 0.485 there.
- **Interacting motion models** (IMM), those that keep the velocity included (without them: hip yaw and pitch in swing
  7 % worse at `paper`, the rest as good), 22 s, one seed, against a bank whose filters are weighed by their
  likelihoods over the last 0.1 s: `paper` has 0.082 0.110 0.132 instead of 0.089 0.112 0.149 in stance and 0.140
  0.095 0.173 instead of 0.157 0.101 0.182 in swing; with `paper_std` sensors hip yaw in swing has 0.024 instead of
  0.052 after pushes at the knee and 0.019 instead of 0.044 on uneven ground. In `friction_load` hip roll, knee and
  ankles gain (ankle pitch in stance 0.24 to 0.14), hip pitch in stance loses (0.39 to 0.47), where it chatters. A
  change of model a second is expected; every three seconds would bring 4 % for hip yaw in swing, and a sigma of
  velocities that is too small. Covariances of their own instead of stationary gains bring nothing: the same errors to
  3 %. Where encoders alone say the velocity, its sigma is up to 1.7 times too large. Sigma scaled by the squared
  innovations of the last 0.3 s brings nothing once errors of velocities are not taken for white.
- **The slope at 1 rad/s.** In `friction_stribeck`, which five slopes up to 0.32 rad/s miss between 0.3 and 2 rad/s, it
  brings hip pitch in swing from 0.072 to 0.043 N m, the knee from 0.065 to 0.036 and ankle pitch from 0.060 to 0.043 at
  `paper_std`; 0.99 and more of the errors are inside their interval, 0.81 were (16 s, one seed). Where friction is what
  five slopes can say it costs nothing. Its narrow prior (0.3 N m) leaves slow joints their viscous friction.
- **Torque and momentum in the velocity filter**: no use. At `paper` the momentum observer says the friction of the
  hips to 1 to 5 N m at 100 rad/s; over an inertia of 0.1 kg m^2 that is a random walk that leaves 0.08 rad/s of
  uncertainty behind 0.3 mrad encoders (two-state filter, stationary), where the bank has 0.003.
- **No-slip** of the standing feet as one more measurement of the joint velocities (sole velocity zero to 3 mm/s and
  10 mrad/s, base velocity unknown, filtered gyroscope), tried at `paper`: errors of the velocity fall by 5 to 15 %,
  of the friction by 0 to 5 % in stance and not at all in swing. Not built in.
- Nobody pushes here and friction stays, so the guards can only cost; they cost nothing. They earn their place in the
  pushes and changes of [accuracy.md](accuracy.md).
- **Limits of the smoother.** Friction that doubles half-way (14 s, `paper_std`): errors 5 to 40 % below the live
  ones. Pushes at the knee: not better than live, hip yaw even 0.07 instead of 0.05 N m. A push is noticed some
  milliseconds after it begins; what was taken for friction until then goes, smoothed, into the time before.

## Other forms of the filter

Given its columns, a window is linear in the state and its measurement, so there is nothing for an **unscented**
filter to approximate: it is the Kalman filter with 2 s points instead of two products. **Error-state** form: every
state is a vector, none an attitude, so error and full state have the same filter. **Information** form: the prior is
informative everywhere, parts of P are exactly singular (what is switched off, the common scale), and every window
needs P itself for bounds and sigma; it would have to be inverted each time. **Square root**: exact to rounding,
several times the cost; what it protects against does not happen, because P is symmetrised, windows are few (100 a
second), and its correlations stay well away from 1/eps:
"""
