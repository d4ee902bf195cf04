"""What many pod classes ask of a node, side by side; kernels only, reached by cimport."""
