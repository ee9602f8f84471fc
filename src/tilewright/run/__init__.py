"""Running a compiled kernel: a small protocol, its backends (a GPU, the emulator), the call on a caller's arrays."""
