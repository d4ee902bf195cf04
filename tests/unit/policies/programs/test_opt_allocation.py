"""Best points against all choices there are, few of many points, and servers of all jobs."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastsim.cluster.server import Server
from fastsim.errors import InputError, SolverError
from fastsim.performance.sensitivity import Demands, Sensitivity
from fastsim.performance.sensitivity_table import Grid, WorkloadProfile
from fastsim.policies.programs.opt_allocation import Choice, PointChooser, best_points, spread, useful_points
from fastsim.policies.solvers.highs import Solver

SERVER = Server(2, 6, 20)


def demands(*surfaces: list[list[float]], sizes: tuple[int, ...] = ()) -> Demands:
    grids = [Grid(np.array([1.0, 3, 5]), np.array([5.0, 10]), np.array(surface)) for surface in surfaces]
    found = tuple(WorkloadProfile(f"w{i}", "t", 1, 1.0, 3, 10, 0, 1.0, grid) for i, grid in enumerate(grids))
    return Sensitivity(found).demands([(p.workload, n) for p, n in zip(found, sizes, strict=True)], SERVER)


def test_points_that_another_beats_are_left_out() -> None:
    grid = Grid(np.array([1.0, 3, 5]), np.array([5.0, 10]), np.array([[0.5, 1.0], [1.0, 1.0], [1.0, 2.0]]))
    assert useful_points(grid, SERVER.fair, "w") == [(2.0, 5, 10), (1.0, 1, 10), (1.0, 3, 5)]


surfaces = st.lists(st.lists(st.sampled_from([0.5, 1.0, 1.5, 2.25]), min_size=2, max_size=2), min_size=3, max_size=3)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(surfaces, st.integers(1, 2), st.integers(1, 2)), min_size=1, max_size=3), st.integers(1, 3))
def test_no_choice_of_all_there_are_is_better(kinds: list[tuple[list[list[float]], int, int]], servers: int) -> None:
    found = demands(*(surface for surface, _, _ in kinds), sizes=tuple(size for _, size, _ in kinds))
    counts = [count for _, _, count in kinds]
    jobs = [k for k, count in enumerate(counts) for _ in range(count)]
    options = []
    for k in jobs:
        grid, n = found.grids[k], kinds[k][1]
        assert grid is not None
        fair = grid.speedup__cm[:2].max()  # within 3 CPUs and 10 GB
        cells = [(c, m) for c in range(3) for m in range(2) if grid.speedup__cm[c, m] >= fair]
        options.append([(grid.speedup__cm[c, m], n * grid.cpu__c[c], n * grid.memory_gb__m[m]) for c, m in cells])
    sums = (np.sum(choice, axis=0) for choice in product(*options))
    best = max((s[0] for s in sums if s[1] <= 6 * servers and s[2] <= 20 * servers), default=None)
    if best is None:
        with pytest.raises(SolverError, match="best points of all jobs"):
            best_points(found, counts, servers, Solver())
        return
    objective, choices = best_points(found, counts, servers, Solver())
    assert objective == pytest.approx(best, abs=1e-9)  # sums in another order
    assert sum(c.jobs * c.speedup for c in choices) == pytest.approx(objective, abs=1e-9)


def test_nothing_to_choose_and_nothing_to_choose_from() -> None:
    flat = demands([[1, 1]] * 3, sizes=(1,))
    assert best_points(flat, [0], 1, Solver()) == (0.0, [])
    assert spread([], SERVER, 2, Solver()).job.tolist() == []
    with pytest.raises(InputError, match="grid rows as well"):
        useful_points(None, SERVER.fair, "w")
    with pytest.raises(InputError, match="no grid point within the fair share of 3 CPUs and 10 GB"):
        useful_points(Grid(np.array([4.0]), np.array([1.0]), np.array([[1.0]])), SERVER.fair, "w")


def test_a_job_is_split_where_no_server_has_all_of_it() -> None:
    # Two servers of 2 GPUs hold four jobs of 1, however they stand; of three jobs of 4 CPUs one is split.
    stands = spread([Choice(0, 1, 3, 4.0, 1.0, 1.0)], SERVER, 2, Solver())
    assert np.bincount(stands.job, stands.share).tolist() == pytest.approx([1, 1, 1])
    assert np.bincount(stands.server, 4 * stands.share[:]).tolist() == pytest.approx([6, 6])
    with pytest.raises(SolverError, match="servers of all jobs"):
        spread([Choice(0, 1, 4, 4.0, 1.0, 1.0)], SERVER, 2, Solver())


def test_it_answers_with_the_best_points() -> None:
    kinds = (("alexnet", 1), ("gnmt", 1), ("m5", 2))
    demands = Sensitivity.default().demands(kinds, Server(8, 24, 500, 500))
    chooser = PointChooser()
    parts = chooser.parts(demands, [4, 3, 1], 1)
    best, _ = best_points(demands, [4, 3, 1], 1, Solver("vertex"))
    assert sum(part.jobs for part in parts) == 8
    assert sum(part.jobs * part.speedup for part in parts) == pytest.approx(best, rel=1e-12)
    assert chooser.solver_s > 0
