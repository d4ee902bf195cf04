"""Records of a run in rounds that have not been drained: jobs that have ended, tasks of rounds."""

class RoundLog:
    """Two growing lists of records."""

    def drained(self) -> tuple[bytes, bytes, bytes]:
        """(jobs, tasks, GPUs of tasks) since the last call, as the bytes of their records."""
