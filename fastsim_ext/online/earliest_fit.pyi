"""When a node could host a kind of pod at the earliest, at a glance."""

from fastsim_ext.online.free_forecast import FreeForecast

class EarliestFit:
    """For kinds of pods and every node: bounds that are never too late."""

    def __init__(self, forecast: FreeForecast) -> None: ...
