"""Renderings of an episode's state: text with a line for each node, and a picture with a square for each node."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fastsim.errors import ScenarioError, suggestion
from fastsim_ext.online.stepped_loop import NODE_FEATURES, POD_FEATURES
from fastsim_ext.online.stepped_queue import JOB_FEATURES, LINE_FEATURES

RENDER_MODES = ("ansi", "rgb_array")
"""Names that Gymnasium has for the two."""
BAR, CELL, EDGE = 20, 16, 2
"""Characters of a bar; pixels of a square and of its border."""
FREE, HELD = np.array([237, 242, 247]), np.array([31, 78, 121])
"""Colours of a node that is free and of one whose GPUs are all held; shades lie between."""
FITS, PLAIN = np.array([214, 96, 20]), np.array([255, 255, 255])
"""Border of a node that can host the pod, and of another."""

Floats = npt.NDArray[np.float32]


def known_mode(render_mode: str | None) -> str | None:
    """The mode, if it is one of ``RENDER_MODES`` or None."""
    if render_mode is not None and render_mode not in RENDER_MODES:
        known = ", ".join(RENDER_MODES)
        raise ScenarioError("render_mode", repr(render_mode), f"one of {known}", suggestion(render_mode, RENDER_MODES))
    return render_mode


def rendered_text(node__nf: Floats, pod__f: Floats, mask: npt.NDArray[np.int8]) -> str:
    """The pod that waits, then each node: its allocated GPU as a bar and in percent; ``*`` where the pod fits."""
    pod = dict(zip(POD_FEATURES, pod__f.tolist(), strict=True))
    lines = [f"{pod['arrived']:.0%} of the pods arrived; {int(mask.sum())} of {len(mask)} nodes can host the next one"]
    return "\n".join(lines + _node_bars(node__nf, mask)) + "\n"


def _node_bars(node__nf: Floats, marked: npt.NDArray[np.int8]) -> list[str]:
    lines = []
    for node, held in enumerate(held_gpu(node__nf).tolist()):
        bar = "#" * round(BAR * held)
        lines.append(f"{'*' if marked[node] else ' '} {node:>5} [{bar:<{BAR}}] {held:4.0%}")
    return lines


def rendered_line(node__nf: Floats, job__kf: Floats, line__f: Floats, mask: npt.NDArray[np.int8]) -> str:
    """The first jobs of the line, ``*`` before those that can start, then each node with its allocated GPU."""
    line = dict(zip(LINE_FEATURES, line__f.tolist(), strict=True))
    lines = [f"{line['arrived']:.0%} of the jobs arrived; {line['waiting']:.0f} wait, {int(mask[:-1].sum())} can start"]
    for place, values in enumerate(job__kf.tolist()):
        job = dict(zip(JOB_FEATURES, values, strict=True))
        if job["present"]:
            gpus = f"{job['num_gpu'] * job['gpu'] / _widest(node__nf):4.0%} of a node's GPUs"
            takes = "stays for ever" if job["duration_h"] < 0 else f"takes {job['duration_h']:.2f} h"
            lines.append(f"{'*' if mask[place] else ' '} {place:>5} {gpus}, waited {job['waited_h']:.2f} h, {takes}")
    return "\n".join(lines + _node_bars(node__nf, np.zeros(len(node__nf), np.int8))) + "\n"


def rendered_squares(node__nf: Floats, job__kf: Floats, mask: npt.NDArray[np.int8]) -> npt.NDArray[np.uint8]:
    """Squares of nodes, and below them the first jobs of the line: the more GPUs, the darker; a border if it fits."""
    nodes = rendered_picture(node__nf, np.zeros(len(node__nf), np.int8))
    column = {name: job__kf[:, k] for k, name in enumerate(JOB_FEATURES)}
    shade = column["num_gpu"] * column["gpu"] / _widest(node__nf)
    jobs = _squares(np.minimum(shade, 1).tolist(), mask[:-1], nodes.shape[1] // CELL)
    return np.concatenate([nodes, np.full((CELL // 2, nodes.shape[1], 3), 255, np.uint8), jobs])


def rendered_picture(node__nf: Floats, mask: npt.NDArray[np.int8]) -> npt.NDArray[np.uint8]:
    """Squares in rows, by position: the darker, the more of the GPUs is allocated; a border where the pod fits."""
    return _squares(held_gpu(node__nf).tolist(), mask, int(np.ceil(np.sqrt(len(mask)))))


def _squares(shade: list[float], bordered: npt.NDArray[np.int8], across: int) -> npt.NDArray[np.uint8]:
    """Squares in rows, each between the colours of what is free and what is held."""
    down = -(-len(shade) // across)
    picture = np.full((down * CELL, across * CELL, 3), 255, np.uint8)
    for place, held in enumerate(shade):
        top, left = CELL * (place // across), CELL * (place % across)
        picture[top : top + CELL, left : left + CELL] = FITS if bordered[place] else PLAIN
        inside = slice(top + EDGE, top + CELL - EDGE), slice(left + EDGE, left + CELL - EDGE)
        picture[inside] = np.rint(FREE + (HELD - FREE) * held).astype(np.uint8)
    return picture


def _widest(node__nf: Floats) -> float:
    """GPUs of the node with most, in the unit of the features; 1 where there are none."""
    return float(node__nf[:, NODE_FEATURES.index("gpus")].max()) or 1.0


def held_gpu(node__nf: Floats) -> Any:
    """The allocated part of each node's GPUs, 0 to 1; of its CPU where it has no GPUs."""
    column = {name: node__nf[:, k] for k, name in enumerate(NODE_FEATURES)}
    return np.where(column["gpus"] > 0, 1 - column["gpu_free"], 1 - column["cpu_free"])
