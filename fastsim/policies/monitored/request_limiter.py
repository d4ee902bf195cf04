"""A limit on requests to an API server: some at once, and so many a second in the long run."""

from __future__ import annotations

import math


class RequestLimiter:
    """A bucket of ``burst`` tokens, full at first, that gains ``per_s`` tokens a second; each request takes one.

    ``full_s`` is the second at which the bucket is full if no more requests come. Without ``per_s`` none ever waits.
    """

    def __init__(self, per_s: float = math.inf, burst: int = 1) -> None:
        self.per_s, self.burst = per_s, burst
        self.full_s = -math.inf

    def sent_s(self, now_s: float) -> float:
        """The second at which a request of now is sent; it takes its token."""
        self.full_s = max(self.full_s, now_s) + 1 / self.per_s
        return max(now_s, self.full_s - self.burst / self.per_s)

    def is_empty(self, now_s: float) -> bool:
        """Whether the bucket has no token left."""
        return self.full_s - self.burst / self.per_s >= now_s

    def wait_s(self, requests: int, pause_s: float) -> float:
        """Seconds for which so many requests wait in all, if they come a pause after the bucket was empty."""
        return max(requests / self.per_s - min(pause_s, self.burst / self.per_s), 0.0)

    def repeat(self, times: int, requests: int) -> None:
        """Take the tokens of so many requests several times.

        Either no request has to wait, or the bucket is empty after each time.
        """
        self.full_s += times * requests / self.per_s
