"""Facts of a kernel that need no run: resources, occupancy, accesses, instructions, roofline."""
