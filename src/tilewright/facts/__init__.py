"""Facts of a kernel that need no run: resources, occupancy, access counts."""
