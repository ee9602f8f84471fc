"""Access patterns of one warp, and the kernels that make each of them one instruction on both machines."""
