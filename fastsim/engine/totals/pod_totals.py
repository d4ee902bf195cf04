"""Costs of pods, and numbers of their tenants."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from fastsim.scenario.round_texts import prices_from
from fastsim.workload import schema as s
from fastsim_ext.state.gpu_prices import Tariff

if TYPE_CHECKING:
    from fastsim.cluster.cluster import Cluster
    from fastsim.scenario.prices import Prices
    from fastsim_ext.state.pod_table import WorkTable


class Tenants:
    """Numbers of the tenants, in order of their first pods."""

    def __init__(self) -> None:
        self._known: dict[str, int] = {}

    def numbers(self, batch: pa.RecordBatch) -> Any:
        """The tenant (int32) of each pod of a batch, -1 for none."""
        if s.TENANT not in batch.schema.names:
            return np.full(batch.num_rows, -1, np.int32)
        encoded = batch.column(s.TENANT).cast(pa.string()).dictionary_encode()
        codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        order = dict.fromkeys(codes[codes >= 0].tolist())
        names = encoded.dictionary.to_pylist()
        number = np.full(len(names) + 1, -1, np.int32)  # the last entry is for pods without a tenant
        for code in order:
            number[code] = self._known.setdefault(names[code], len(self._known))
        return number[codes]


def prices_for(source: Any, cluster: Cluster) -> Prices | None:
    """The prices of a text or an object, for all GPU models of the cluster that pods may pay for."""
    if source is None:
        return None
    nodes, partitioned = cluster.offered.select(["num_gpu", "gpu_model"]).to_pylist(), cluster.partitioned_gpus.tolist()
    paid = [node["gpu_model"] for node, gpus in zip(nodes, partitioned, strict=True) if node["num_gpu"] or gpus]
    return prices_from(source, list(dict.fromkeys(paid)))


def tariff_of(cluster: Cluster, source: Any) -> Tariff | None:
    """Cost of GPUs of each node over time, from prices as a text or an object; None without prices."""
    prices = prices_for(source, cluster)
    if prices is None:
        return None
    column = {model: k for k, model in enumerate(prices.gpu_models)}
    columns = [column.get(model, -1) for model in cluster.nodes["gpu_model"].to_pylist()]
    return Tariff(prices.since_s, np.ascontiguousarray(prices.price__tg), np.array(columns, np.int32))


def charge(work: WorkTable, cluster: Cluster, prices: Prices | None) -> None:
    """Charge pods for GPUs, if there are prices; these have all models of the cluster."""
    tariff = tariff_of(cluster, prices)
    if tariff is not None:
        work.use_tariff(tariff)
