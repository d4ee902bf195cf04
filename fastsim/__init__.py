"""fastsim: one engine for GPU-cluster schedulers."""
