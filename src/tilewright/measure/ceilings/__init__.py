"""A card's own limits, measured: FMA pipe, register ports, shared memory, L2, DRAM. One small kernel runs into each.

`kernels` says which there are, `work` how much a launch does, `check` that it did it. Timing is `measure`'s.
"""
