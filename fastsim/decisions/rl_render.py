"""Renderings of an episode's state: text with a line for each node, and a picture with a square for each node."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fastsim_ext.online.stepped_loop import NODE_FEATURES, POD_FEATURES

RENDER_MODES = ("ansi", "rgb_array")
"""Names that Gymnasium has for the two."""
BAR, CELL, EDGE = 20, 16, 2
"""Characters of a bar; pixels of a square and of its border."""
FREE, HELD = np.array([237, 242, 247]), np.array([31, 78, 121])
"""Colours of a node that is free and of one whose GPUs are all held; shades lie between."""
FITS, PLAIN = np.array([214, 96, 20]), np.array([255, 255, 255])
"""Border of a node that can host the pod, and of another."""

Floats = npt.NDArray[np.float32]


def rendered_text(node__nf: Floats, pod__f: Floats, mask: npt.NDArray[np.int8]) -> str:
    """The pod that waits, then each node: its allocated GPU as a bar and in percent; ``*`` where the pod fits."""
    pod = dict(zip(POD_FEATURES, pod__f.tolist(), strict=True))
    lines = [f"{pod['arrived']:.0%} of the pods arrived; {int(mask.sum())} of {len(mask)} nodes can host the next one"]
    for node, held in enumerate(held_gpu(node__nf).tolist()):
        bar = "#" * round(BAR * held)
        lines.append(f"{'*' if mask[node] else ' '} {node:>5} [{bar:<{BAR}}] {held:4.0%}")
    return "\n".join(lines) + "\n"


def rendered_picture(node__nf: Floats, mask: npt.NDArray[np.int8]) -> npt.NDArray[np.uint8]:
    """Squares in rows, by position: the darker, the more of the GPUs is allocated; a border where the pod fits."""
    across = int(np.ceil(np.sqrt(len(mask))))
    down = -(-len(mask) // across)
    picture = np.full((down * CELL, across * CELL, 3), 255, np.uint8)
    for node, held in enumerate(held_gpu(node__nf)):
        top, left = CELL * (node // across), CELL * (node % across)
        picture[top : top + CELL, left : left + CELL] = FITS if mask[node] else PLAIN
        inside = slice(top + EDGE, top + CELL - EDGE), slice(left + EDGE, left + CELL - EDGE)
        picture[inside] = np.rint(FREE + (HELD - FREE) * float(held)).astype(np.uint8)
    return picture


def held_gpu(node__nf: Floats) -> Any:
    """The allocated part of each node's GPUs, 0 to 1; of its CPU where it has no GPUs."""
    column = {name: node__nf[:, k] for k, name in enumerate(NODE_FEATURES)}
    return np.where(column["gpus"] > 0, 1 - column["gpu_free"], 1 - column["cpu_free"])
