"""Pictures and texts of the state of an episode."""

from __future__ import annotations

import numpy as np

from fastsim.decisions.rl_render import BAR, CELL, EDGE, FITS, FREE, HELD, rendered_picture, rendered_text

# cpu_free, memory_free, gpu_free, largest_gpu_free, whole_gpus_free, gpus of: half held, free, without GPUs
NODES = np.array([[1, 1, 0.5, 1, 0.5, 1], [1, 1, 1, 1, 1, 0.5], [0.25, 1, 0, 0, 0, 0]], np.float32)
POD = np.array([0.1, 0.1, 1, 1, 0.4], np.float32)
MASK = np.array([1, 1, 0], np.int8)


def test_a_line_for_each_node() -> None:
    lines = rendered_text(NODES, POD, MASK).splitlines()
    assert lines[0] == "40% of the pods arrived; 2 of 3 nodes can host the next one"
    assert [line[0] for line in lines[1:]] == ["*", "*", " "]
    assert [line.count("#") for line in lines[1:]] == [BAR // 2, 0, 3 * BAR // 4]
    assert [line.split()[-1] for line in lines[1:]] == ["50%", "0%", "75%"]


def test_a_square_for_each_node() -> None:
    picture = rendered_picture(NODES, MASK)
    assert picture.shape == (2 * CELL, 2 * CELL, 3) and picture.dtype == np.uint8
    middle = CELL // 2
    assert picture[middle, middle].tolist() == np.rint((FREE + HELD) / 2).tolist()
    assert picture[middle, CELL + middle].tolist() == FREE.tolist()
    assert picture[0, 0].tolist() == FITS.tolist() and picture[EDGE, EDGE].tolist() != FITS.tolist()
    assert (picture[CELL, 0] == 255).all() and (picture[CELL + middle, CELL + middle] == 255).all()
