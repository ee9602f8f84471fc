"""A GPU as calls use it: what it is and the kernels loaded on it. One for each device, shared by all threads."""

from __future__ import annotations

import os
import threading
from functools import cache

from tilewright.api.plan import Part
from tilewright.arch import ArchSpec
from tilewright.compile.nvrtc import compile_cubin
from tilewright.compile.source import kernel_source
from tilewright.errors import InvalidInput
from tilewright.facts.roofline import card_of_device
from tilewright.run.args import launch_args
from tilewright.run.call import grid_of
from tilewright.run.cuda import CudaBackend
from tilewright.run.prepared import PreparedLaunch
from tilewright.run.stream_scratch import StreamScratch, need_of

LEGACY_DEFAULT_STREAM = 0


class GpuTarget:
    """One GPU; `card` is its name where that is listed. Raises NoDevice where there is none of that number."""

    def __init__(self, device: int) -> None:
        self._gpu = CudaBackend(device, stream=LEGACY_DEFAULT_STREAM)
        self._functions: dict[str, tuple[int, int]] = {}
        self._loading = threading.Lock()
        self._scratch = StreamScratch()
        self.arch: ArchSpec = self._gpu.arch
        self.sm_count: int = self._gpu.sm_count
        card = card_of_device(self._gpu.device.name)
        self.card: str | None = None if card is None else card.name

    def is_capturing(self, stream: int) -> bool:
        """Whether work on the stream of this raw handle is being captured in a graph."""
        return self._gpu.is_capturing(stream)

    def load(self, part: Part, stream: int) -> None:
        """Compile and load a part's kernel. Raises InvalidInput as `prepared` does."""
        grid = grid_of(part.choice.config, part.problem, sm_count=self.sm_count)
        self._loaded(part, grid.dynamic_smem_bytes, stream)

    def prepared(self, part: Part, addresses: dict[str, int], stream: int) -> PreparedLaunch:
        """The launch of a part, its kernel compiled and loaded. `addresses` are the first that it is launched with.

        Raises InvalidInput where a kernel would have to be loaded while `stream` is captured in a graph.
        """
        config, problem = part.choice.config, part.problem
        grid = grid_of(config, problem, sm_count=self.sm_count)
        function, context = self._loaded(part, grid.dynamic_smem_bytes, stream)
        args = launch_args(config, problem, self._gpu, workspace=0, flags=0, **addresses)
        maps, needs = tuple(config.tensor_maps(problem)), need_of(config, problem, sm_count=self.sm_count)
        return PreparedLaunch(function, context, grid, args, maps=maps, needs=needs, scratch=self._scratch)

    def _loaded(self, part: Part, dynamic_smem_bytes: int, stream: int) -> tuple[int, int]:
        source = kernel_source(part.choice.config, part.problem)
        with self._loading:
            found = self._functions.get(source.text)
            if found is None:
                if self.is_capturing(stream):
                    raise InvalidInput(
                        f"{part.problem}: its kernel isn't loaded yet, and can't be while a graph is captured; make "
                        f"the same call once before the capture, or Gemm(...).plan()"
                    )
                binary = compile_cubin(source, self.arch)
                found = self._functions[source.text] = self._gpu.loaded(binary, dynamic_smem_bytes)
        return found


@cache
def gpu_target(device: int) -> GpuTarget:
    """The target of a GPU by number. Raises NoDevice."""
    return GpuTarget(device)


os.register_at_fork(after_in_child=gpu_target.cache_clear)
