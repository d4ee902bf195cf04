"""The canonical pod table: one named constant per column, its unit and what null means.

Times are float64 seconds from the origin of the trace. Requests are per pod, GPU requests per pod and per device.
Null means unknown or not applicable; there are no sentinels such as -1, 0 or "".
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

SCHEMA_VERSION = "1.0"
"""Version of the pod and node tables; readers refuse another major number."""

POD_ID = "pod_id"
"""Number of the pod; the primary key, in any order."""
SUBMIT_S = "submit_s"
"""Arrival, seconds; zero or negative for a population that is already there when the run begins."""
DURATION_S = "duration_s"
"""Service time once placed, seconds; null = runs for ever."""
CPU_MILLI = "cpu_milli"
"""CPU request, thousandths of a virtual CPU."""
MEMORY_MIB = "memory_mib"
"""Memory request, MiB; zero is a request of zero."""
NUM_GPU = "num_gpu"
"""Devices the pod touches; 0 = CPU-only pod."""
GPU_MILLI = "gpu_milli"
"""Thousandths of each device: 0 without GPUs, 1-1000 with one, 1000 with several."""
GPU_MEMORY_MIB = "gpu_memory_mib"
"""Memory needed on each device, MiB."""
GPU_MODELS = "gpu_models"
"""Acceptable GPU models as the source wrote them (order and repeats kept); null = any."""
JOB_ID = "job_id"
"""Job or deployment the pod belongs to."""
GANG_SIZE = "gang_size"
"""Pods of the job that start together or not at all; null = 1."""
AFTER_GANG = "after_gang"
"""The pod starts only when a gang of its job has."""
TASK_ROLE = "task_role"
"""Role inside the job: worker, ps, ..."""
QOS = "qos"
"""Service class in the source's words: LS, BE, Burstable, Guaranteed, ..."""
PRIORITY = "priority"
"""Larger is more important."""
PREEMPTIBLE = "preemptible"
"""The pod may be stopped for a more important one."""
PREEMPTS = "preempts"
"""The pod may stop less important ones."""
BUDGETS = "budgets"
"""Disruption budgets of the pod: name, and how many of the pods with that budget are to keep running."""
TENANT = "tenant"
"""User, virtual cluster or organisation."""
GROUP = "group"
"""Key of recurring work."""
MAX_PER_NODE = "max_per_node"
"""Most pods of one `group` on a node."""
SPREAD = "spread"
"""Rules of spread: set of pods, label of domains, most pods more than elsewhere, fewest domains, counted nodes."""
SPREAD_SETS = "spread_sets"
"""Sets of pods, for rules of spread and rules about pods near, that the pod is in."""
NEAR = "near"
"""Rules about pods near: be beside or apart from the pods of a set, in a domain of a label."""
PREFERENCES = "preferences"
"""Preferences, which make nodes better or worse and forbid none: labels, taints, pods near, spread, images."""
PREFERENCE_SETS = "preference_sets"
"""Sets of pods, for preferences, that the pod is in."""
EXTRA_RESOURCES = "extra_resources"
"""Further additive requests by name."""
MIG = "mig"
"""Instances of partitioned GPUs: `1g.10gb`, `2*1g.10gb`; further requests, as in `extra_resources`."""
CONSTRAINTS = "constraints"
"""Node-label expressions: key, operator, values."""
PINNED_NODE = "pinned_node"
"""Name of the only node the pod may use."""
BOUND_NODE = "bound_node"
"""Name of the node that the pod holds a place on when it arrives: it starts there, and stays unless a rule moves it."""
BOUND_GPUS = "bound_gpus"
"""Numbers of the devices that it holds there; null = those that the policy picks."""
WORKLOAD = "workload"
"""Key into a throughput table."""
BATCH_SIZE = "batch_size"
"""Training batch size, samples."""
TOTAL_WORK = "total_work"
"""Work of a job, in the unit the metadata names."""
MIN_REPLICAS = "min_replicas"
"""Fewest workers of an elastic job."""
MAX_REPLICAS = "max_replicas"
"""Most workers of an elastic job."""
DEADLINE_S = "deadline_s"
"""Absolute deadline, seconds."""
SLO = "slo"
"""Deadline as a multiple of the ideal run time."""
WEIGHT = "weight"
"""Importance of a job, more than 0; null = 1."""
EST_DURATION_S = "est_duration_s"
"""Duration known to the policy, seconds."""
ORIG_START_S = "orig_start_s"
"""When the source cluster started the pod, seconds; for validation only."""
ORIG_END_S = "orig_end_s"
"""When the source cluster ended the pod, seconds; for validation only."""
ORIG_STATUS = "orig_status"
"""Last status in the source."""
CENSORED = "censored"
"""The duration is a lower bound: the pod outlived the recording."""
NATIVE_ID = "native_id"
"""Name in the source."""
NATIVE_JOB_ID = "native_job_id"
"""Name of the job in the source, whose `job_id` is a number for it."""
_NATIVE = "native_"
"""Prefix of the names of further columns: texts as the source had them, which no run reads."""

_SMALL_ENUM = pa.dictionary(pa.int8(), pa.string())
_ENUM = pa.dictionary(pa.int32(), pa.string())
_EXPRESSION = pa.struct([("key", pa.string()), ("op", pa.string()), ("values", pa.list_(pa.string()))])
_BUDGET = pa.struct([("name", pa.string()), ("least", pa.int32())])
_NEAR = pa.struct([("rule", pa.string()), ("pods", pa.string()), ("topology", pa.string())])
_PREFERENCE = pa.struct([
    ("rule", pa.string()), ("weight", pa.int32()), ("pods", pa.string()), ("topology", pa.string()),
    ("max_skew", pa.int32()), ("nodes", pa.list_(_EXPRESSION)),
])  # fmt: skip
_SPREAD = pa.struct([
    ("pods", pa.string()), ("topology", pa.string()), ("max_skew", pa.int32()), ("min_domains", pa.int32()),
    ("counted", pa.list_(_EXPRESSION)),
])  # fmt: skip

REQUIRED: dict[str, pa.DataType] = {
    POD_ID: pa.int64(),
    SUBMIT_S: pa.float64(),
    CPU_MILLI: pa.int64(),
    MEMORY_MIB: pa.int64(),
    NUM_GPU: pa.int16(),
    GPU_MILLI: pa.int16(),
}
"""Columns every workload has, never null."""

OPTIONAL: dict[str, pa.DataType] = {
    DURATION_S: pa.float64(),
    GPU_MEMORY_MIB: pa.int64(),
    GPU_MODELS: pa.list_(pa.string()),
    JOB_ID: pa.int64(),
    GANG_SIZE: pa.int32(),
    AFTER_GANG: pa.bool_(),
    TASK_ROLE: _SMALL_ENUM,
    QOS: _SMALL_ENUM,
    PRIORITY: pa.int32(),
    PREEMPTIBLE: pa.bool_(),
    PREEMPTS: pa.bool_(),
    BUDGETS: pa.list_(_BUDGET),
    TENANT: _ENUM,
    GROUP: _ENUM,
    MAX_PER_NODE: pa.int32(),
    SPREAD: pa.list_(_SPREAD),
    SPREAD_SETS: pa.list_(pa.string()),
    NEAR: pa.list_(_NEAR),
    PREFERENCES: pa.list_(_PREFERENCE),
    PREFERENCE_SETS: pa.list_(pa.string()),
    EXTRA_RESOURCES: pa.map_(pa.string(), pa.int64()),
    MIG: pa.string(),
    CONSTRAINTS: pa.list_(_EXPRESSION),
    PINNED_NODE: pa.string(),
    BOUND_NODE: pa.string(),
    BOUND_GPUS: pa.list_(pa.int16()),
    WORKLOAD: _ENUM,
    BATCH_SIZE: pa.int32(),
    TOTAL_WORK: pa.float64(),
    MIN_REPLICAS: pa.int32(),
    MAX_REPLICAS: pa.int32(),
    DEADLINE_S: pa.float64(),
    SLO: pa.float64(),
    WEIGHT: pa.float64(),
    EST_DURATION_S: pa.float64(),
    ORIG_START_S: pa.float64(),
    ORIG_END_S: pa.float64(),
    ORIG_STATUS: _SMALL_ENUM,
    CENSORED: pa.bool_(),
    NATIVE_ID: pa.string(),
    NATIVE_JOB_ID: pa.string(),
}
"""Columns a workload may have; an absent one is the same as one full of nulls."""

POD_SCHEMA = pa.schema(
    [pa.field(name, kind, nullable=False) for name, kind in REQUIRED.items()]
    + [pa.field(name, kind) for name, kind in OPTIONAL.items()]
)
"""The full pod table in canonical column order."""

SORTED_BY = (SUBMIT_S,)
"""Sort key of every workload; pods of one instant are tried in the order of rows."""


def pod_schema(columns: Iterable[str]) -> pa.Schema:
    """The part of `POD_SCHEMA` named in `columns`, in canonical order, and then the native columns as they stand."""
    names = dict.fromkeys(columns)
    fields = [field for field in POD_SCHEMA if field.name in names]
    return pa.schema(fields + [pa.field(name, pa.string()) for name in names if is_native(name)])


def is_native(name: str) -> bool:
    """Whether a column is kept from the source only."""
    return name.startswith(_NATIVE) and name not in (NATIVE_ID, NATIVE_JOB_ID)
