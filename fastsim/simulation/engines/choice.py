"""The engine of each kind of policies; it is loaded when it is needed."""

from __future__ import annotations

from fastsim.simulation.engines.engine import Engine


def engine_named(name: str) -> Engine:
    """The engine of this name: pods, shares, orders, adaptive or monitored."""
    if name == "pods":
        from fastsim.simulation.engines import pods

        return pods.ENGINE
    if name == "adaptive":
        from fastsim.simulation.engines import adaptive

        return adaptive.ENGINE
    if name == "monitored":
        from fastsim.simulation.engines import monitored

        return monitored.ENGINE
    from fastsim.simulation.engines import rounds

    return rounds.OF_ORDERS if name == "orders" else rounds.OF_SHARES
