"""Importer of Gavel's throughput files: nested JSON of steps per second by worker type, job and companion.

``{"v100": {"('LM (batch size 5)', 1)": {"null": 48.4, "('A3C', 1)": [30.2, 2.1]}}}``: a job key names the workload and
its number of GPUs; ``null`` is the job alone, any other key the two rates while both share every GPU. Worker types that
end in ``_unconsolidated`` are the same GPU model with the GPUs spread over nodes; their rows have consolidated = false.

In files of 2019 a job key is a name alone, ``LM (batch size 5)``: its rates hold for 1, 2, 4 and 8 GPUs. Two jobs of
one type have a rate each there, of which the mean is taken.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import pyarrow as pa

from fastsim.errors import InputError
from fastsim.foundation.limits.packed_file import opened_text
from fastsim.foundation.nested_text import json_value
from fastsim.foundation.parquet import one_line
from fastsim.performance.rate_table import RATE_SCHEMA, rate_table

SPREAD = "_unconsolidated"
"""End of a worker type's name if its GPUs are spread over nodes."""
ALONE = "null"
"""Key of the rate without a companion."""
_JOB = re.compile(r"\('(.*)', ([0-9]{1,9})\)")
"""Workload and number of GPUs of a job; no table holds a number of ten digits."""
EARLY_SIZES = (1, 2, 4, 8)
"""Numbers of GPUs of a job whose key names none."""
MOST_RATE = sys.float_info.max
_LAYOUT = "an object of worker type, job, companion and steps/s"


def import_rates(path: str | os.PathLike[str]) -> pa.Table:
    """All rates of one file (.json or .json.gz), steps/s, in canonical order; see `rate_table.RATE_SCHEMA`."""
    columns: dict[str, list[Any]] = {name: [] for name in RATE_SCHEMA.names}
    for row in _rows(str(path), _document(path)):
        for name, value in zip(RATE_SCHEMA.names, row, strict=True):
            columns[name].append(value)
    return rate_table(columns)


def _document(path: str | os.PathLike[str]) -> Any:
    try:
        with opened_text(path) as text:
            return json_value(text.read(), object_pairs_hook=_object, parse_constant=_refused)
    except FileNotFoundError as error:
        raise InputError(str(path), "no such file", "a JSON file of rates") from error
    except json.JSONDecodeError as error:
        raise InputError(f"{path}:{error.lineno}", f"{error.msg} at column {error.colno}", "JSON") from None
    except (OSError, EOFError, ValueError) as error:
        raise InputError(str(path), one_line(error), "a JSON file of rates, plain or gzipped") from error


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"the key {next(key for key in keys if keys.count(key) > 1)!r} twice in one object")
    return values


def _refused(constant: str) -> None:
    raise ValueError(f"the constant {constant}")


def _rows(where: str, document: Any) -> Iterator[tuple[Any, ...]]:
    for worker, jobs in _items(where, document):
        model, spread = worker.removesuffix(SPREAD), worker.endswith(SPREAD)
        for key, companions in _items(f"{where}: {worker}", jobs):
            at = f"{where}: {worker}: {key}"
            workload, sizes = _sizes(at, key)
            for other, rates in _items(at, companions):
                partner = None if other == ALONE else _partner(at, other, sizes)
                mine, theirs = _rates(f"{at}: {other}", rates, partner is not None)
                if sizes == EARLY_SIZES and theirs is not None and partner == workload:
                    mine = theirs = (mine + theirs) / 2
                for num_gpu in sizes:
                    yield workload, model, num_gpu, None, not spread, partner, mine, theirs


def _items(where: str, value: Any) -> Iterator[tuple[str, Any]]:
    if not isinstance(value, dict):
        raise InputError(where, _shown(value), _LAYOUT)
    yield from value.items()


@cache
def _matched(key: str) -> tuple[str, int] | None:
    match = _JOB.fullmatch(key)
    return (match[1], int(match[2])) if match and int(match[2]) > 0 else None


def _job(where: str, key: str) -> tuple[str, int]:
    job = _matched(key)
    if job is None:
        raise InputError(where, repr(key), "a job such as ('LM (batch size 5)', 1)")
    return job


def _sizes(where: str, key: str) -> tuple[str, tuple[int, ...]]:
    """Workload of a job key, and the numbers of GPUs that its rates are of."""
    if key in JOB_NAMES:
        return key, EARLY_SIZES
    workload, num_gpu = _job(where, key)
    return workload, (num_gpu,)


def _partner(where: str, key: str, sizes: tuple[int, ...]) -> str:
    workload, others = _sizes(f"{where}: {key}", key)
    if others != sizes:
        found, expected = (", ".join(map(str, counts)) for counts in (others, sizes))
        raise InputError(f"{where}: {key}", f"{found} GPUs", f"{expected}, as many as the other job")
    return workload


def _rates(where: str, value: Any, paired: bool) -> tuple[float, float | None]:
    rates = value if paired else [value]
    if not isinstance(rates, list) or len(rates) != 1 + paired or not all(map(_is_rate, rates)):
        raise InputError(where, _shown(value), "two rates of 0 or more steps/s" if paired else "0 or more steps/s")
    return float(rates[0]), float(rates[1]) if paired else None


def _is_rate(value: Any) -> bool:
    # Not below infinity: whole numbers of more than 308 digits are, and are no floats.
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= MOST_RATE


def _shown(value: Any) -> str:
    return json.dumps(value)[:60]


class JobType(NamedTuple):
    """A job type and the further fields of a line of a trace; `%s` in a command is the folder of the data."""

    name: str
    command: str
    folder: str
    steps_option: str
    needs_data: bool


class _Family(NamedTuple):
    model: str
    batch_sizes: tuple[int, ...]
    command: str
    folder: str
    steps_option: str


_FAMILIES = (
    _Family(
        "ResNet-18", (16, 32, 64, 128, 256), "python3 main.py --data_dir=%s/cifar10 --batch_size {}",
        "image_classification/cifar10", "--num_steps",
    ),
    _Family(
        "ResNet-50", (16, 32, 64, 128), "python3 main.py -j 8 -a resnet50 -b {} %s/imagenet/",
        "image_classification/imagenet", "--num_minibatches",
    ),
    _Family(
        "Transformer", (16, 32, 64, 128, 256),
        "python3 train.py -data %s/translation/multi30k.atok.low.pt -batch_size {} -proj_share_weight",
        "translation", "-step",
    ),
    _Family(
        "LM", (5, 10, 20, 40, 80), "python main.py --cuda --data %s/wikitext2 --batch_size {}",
        "language_modeling", "--steps",
    ),
    _Family(
        "Recommendation", (512, 1024, 2048, 4096, 8192),
        "python3 train.py --data_dir %s/ml-20m/pro_sg/ --batch_size {}", "recommendation", "-n",
    ),
)  # fmt: skip
_PLAIN = (
    JobType(
        "A3C", "python3 main.py --env PongDeterministic-v4 --workers 4 --amsgrad True", "rl", "--max-steps", False
    ),
    JobType(
        "CycleGAN", "python3 cyclegan.py --dataset_path %s/monet2photo --decay_epoch 0", "cyclegan", "--n_steps", True
    ),
)  # fmt: skip
JOB_TYPES: tuple[JobType, ...] = (
    *(
        JobType(f"{f.model} (batch size {size})", f.command.format(size), f.folder, f.steps_option, True)
        for f in _FAMILIES
        for size in f.batch_sizes
    ),
    *_PLAIN,
)
"""All job types in the order that a seed's choices depend on."""
JOB_NAMES: tuple[str, ...] = tuple(kind.name for kind in JOB_TYPES)
"""Their names, the `workload` of a job."""


def _with_a3c_before_lm() -> tuple[str, ...]:
    others = [name for name in JOB_NAMES if name != "A3C"]
    place = next(place for place, name in enumerate(others) if name.startswith("LM "))
    return (*others[:place], "A3C", *others[place:])


JOB_TABLES: dict[str, tuple[str, ...]] = {"2020-08": JOB_NAMES, "2020-05": _with_a3c_before_lm()}
"""Orders of the table from which jobs are drawn, by month: the last revision's, and that of the published figures."""
