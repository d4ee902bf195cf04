"""One step of a search in a box; kernels only."""
