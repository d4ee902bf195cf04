"""Normalised goodput of each configuration for each of many jobs, from their fitted step times."""

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.uint8]

class GoodputKernel:
    """Configurations ``q`` on groups ``g``, and limits and speed ratios of applications ``a`` on these groups.

    ``low`` and ``high`` are samples a GPU takes at once, ``stages`` the GPUs of a replica, ``ratio[a, c, d]`` how many
    times faster one GPU of ``c`` is than one of ``d`` (NaN: unknown).
    """

    columns: int
    groups: int

    def __init__(
        self, group__q: Ints, nodes__q: Ints, gpus__q: Ints, per_node__g: Ints, low__ag: Ints, high__ag: Ints,
        stages__ag: Ints, ratio__agg: Floats,
    ) -> None: ...  # fmt: skip
    def rows(
        self, perf__jgp: Floats, known__jg: Flags, most__jg: Ints, noise__jn: Floats, app__j: Ints, batch__j: Ints,
        tuned__j: Flags, row__jq: npt.NDArray[np.float32],
    ) -> None:  # fmt: skip
        """Fill a row for each job; ``perf`` and ``noise`` hold the fields of these structs in ``goodput.pxd``.

        ``known`` marks the groups on which a job has run, ``most`` limits its replicas there. ``batch`` is the most
        samples of a step, and their exact number if the job is not ``tuned``.
        """
