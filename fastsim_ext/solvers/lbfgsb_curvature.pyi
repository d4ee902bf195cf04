"""What a search knows of a function's curvature; kernels only."""
