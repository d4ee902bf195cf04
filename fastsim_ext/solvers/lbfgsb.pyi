"""Downhill in a box, with the curvature learnt on the way; kernels only."""
