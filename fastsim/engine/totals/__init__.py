"""What jobs and pods of a run add up to."""
