"""Compiling a kernel: for a GPU by NVRTC, for the emulator by the host's C++ compiler, through one cache."""
