"""Running a compiled kernel: one small protocol, two backends (a GPU, the emulator), and the call on a caller's arrays."""
