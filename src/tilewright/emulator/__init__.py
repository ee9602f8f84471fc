"""Running a host-compiled kernel, CTA by CTA, in a child process: the C++ runner and its Python face.

`runtime/` is what the child is made of, `memory` where arrays lie, `process` one launch, `symbols` and `report`
what a failed one says. It proves results; it never predicts a GPU's time. `docs/emulator.md` tells how it works.
"""
