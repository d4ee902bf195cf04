"""Pictures and texts of the state of an episode."""

from __future__ import annotations

import numpy as np

from fastsim.decisions.agents.render import (
    BAR,
    CELL,
    EDGE,
    FITS,
    FREE,
    HELD,
    rendered_line,
    rendered_picture,
    rendered_squares,
    rendered_text,
)

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


JOBS = np.array([[0.1, 0.1, 1, 0.5, 0.25, 2, 1], [0.1, 0.1, 1, 1, 0, -1, 1], [0] * 7], np.float32)


def test_a_line_for_each_job_that_waits() -> None:
    lines = rendered_line(NODES, JOBS, np.array([2, 0.4], np.float32), np.array([1, 0, 0, 1], np.int8)).splitlines()
    assert lines[0] == "40% of the jobs arrived; 2 wait, 1 can start"
    assert lines[1] == "*     0  50% of a node's GPUs, waited 0.25 h, takes 2.00 h"
    assert lines[2] == "      1 100% of a node's GPUs, waited 0.00 h, stays for ever"
    assert [line.count("#") for line in lines[3:]] == [BAR // 2, 0, 3 * BAR // 4]


def test_a_row_of_squares_for_the_jobs() -> None:
    picture = rendered_squares(NODES, JOBS, np.array([1, 0, 0, 1], np.int8))
    assert picture.shape == (2 * CELL + CELL // 2 + 2 * CELL, 2 * CELL, 3) and picture.dtype == np.uint8
    top = 2 * CELL + CELL // 2
    assert picture[top, 0].tolist() == FITS.tolist()
    assert picture[top + CELL // 2, CELL // 2].tolist() == np.rint((FREE + HELD) / 2).tolist()
    assert picture[top + CELL // 2, CELL + CELL // 2].tolist() == HELD.tolist()
    assert picture[0, 0].tolist() == [255] * 3
