"""Lower bounds of the earliest time at which each node can host a kind of pod."""

from fastsim_ext.online.free_forecast import FreeForecast

class EarliestFit:
    """For kinds of pods and every node: bounds that are never too late."""

    def __init__(self, forecast: FreeForecast) -> None: ...
