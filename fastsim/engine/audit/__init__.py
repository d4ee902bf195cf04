"""What every figure means, and the figures of a run worked out again from that."""
