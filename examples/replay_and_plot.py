"""Replay a bag and plot the friction of one joint with its 2-sigma band.

    python examples/replay_and_plot.py [BAG [ROBOT]]

BAG is a rosbag2 of your robot and ROBOT its YAML; without arguments, the built-in biped walks first.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
import plotly.graph_objects as go

import friction_estimator as fe

folder = Path(tempfile.mkdtemp())
bag, robot = (*sys.argv[1:], None, None)[:2]
if bag is None:
    bag = folder / "walk"
    fe.simulate("suralp", duration=6.0).save(bag)

result = fe.replay(bag, robot)
print(*result.warnings, sep="\n")

joint = int(np.nanmean(np.abs(result.velocity), axis=0).argmax())  # the joint that moves most
friction, sigma = result.friction[:, joint], result.sigma[:, joint]
largest = 1.5 * float(np.abs(friction).max())  # the band is much wider at the start
figure = go.Figure(layout={"title": result.joint_names[joint], "xaxis_title": "s", "yaxis_title": "N m"})
figure.update_yaxes(range=[-largest, largest])
figure.add_scatter(x=result.time, y=friction + 2.0 * sigma, line_width=0, showlegend=False)
figure.add_scatter(x=result.time, y=friction - 2.0 * sigma, line_width=0, fill="tonexty", name="2 sigma")
figure.add_scatter(x=result.time, y=friction, name="friction")
if result.truth is not None:
    figure.add_scatter(x=result.time, y=result.truth[:, joint], name="true friction", line_dash="dash")
figure.write_html(folder / "friction.html")
print(f"open {folder / 'friction.html'}")
