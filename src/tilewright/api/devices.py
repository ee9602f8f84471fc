"""The devices that calls run on: a GPU, shared by all threads, or for arrays of the host a GPU or the emulator."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from tilewright.api.plan import Part
from tilewright.arch import ArchSpec, get_arch
from tilewright.compile.binary import Binary, KernelSource
from tilewright.compile.source import kernel_source
from tilewright.compile.variant import Variant
from tilewright.errors import InvalidInput, NoDevice
from tilewright.facts.roofline import card_of_device
from tilewright.run.kernel import Kernel, bind

if TYPE_CHECKING:
    from tilewright.run.cuda import CudaBackend
    from tilewright.run.emulator import EmulatorBackend

LEGACY_DEFAULT_STREAM = 0
EMULATED_ARCH, EMULATED_SMS = "sm_90a", 132
"""What the emulator stands for where a config is chosen: an H200."""
HOST_GPU = 0
"""The GPU that multiplies arrays of the host."""


class GpuTarget:
    """One GPU; `card` is its name where that is listed. Raises NoDevice where there is none of that number."""

    def __init__(self, device: int) -> None:
        from tilewright.run.cuda import CudaBackend

        self._gpu = CudaBackend(device, stream=LEGACY_DEFAULT_STREAM)
        self.arch: ArchSpec = self._gpu.arch
        self.sm_count: int = self._gpu.sm_count
        self.card: str | None = _card_name(str(self._gpu.device.name))

    def is_capturing(self, stream: int) -> bool:
        """Whether work on the stream of this raw handle is being captured in a graph."""
        return self._gpu.is_capturing(stream)

    def bind(self, part: Part, stream: int) -> Kernel:
        """The kernel of a plan's launches, compiled and loaded.

        Raises InvalidInput where it would have to be loaded while `stream` is captured in a graph.
        """
        config, problem = part.choice.config, part.problem
        variant = Variant(dependent=part.choice.dependent)
        binary = self._gpu.compile(kernel_source(config, problem, variant))
        if not self._gpu.is_loaded(binary) and self.is_capturing(stream):
            raise InvalidInput(
                f"{problem}: its kernel isn't loaded yet, and can't be while a graph is captured; make the same call "
                f"once before the capture, or Gemm(...).plan()"
            )
        return bind(config, problem, self._gpu, variant=variant, binary=binary)


@cache
def gpu_target(device: int) -> GpuTarget:
    """The target of a GPU by number. Raises NoDevice."""
    return GpuTarget(device)


os.register_at_fork(after_in_child=gpu_target.cache_clear)


@dataclass(frozen=True, slots=True)
class HostTarget:
    """A device for arrays of the host, and what configs are chosen for."""

    arch: ArchSpec
    sm_count: int
    device: EmulatorBackend | CudaBackend
    card: str | None = None

    def bind(self, part: Part) -> Kernel:
        """The kernel of a plan's launches."""
        config, problem = part.choice.config, part.problem
        compiled = _compiled_for_cpu if self.device.name == "emulator" else None
        return bind(config, problem, self.device, compiled=compiled)


def host_target(backend: str | None) -> HostTarget:
    """The device for `backend`, which the caller closes. Raises NoDevice where a GPU is meant and there is none."""
    if backend == "emulator":
        from tilewright.run.emulator import EmulatorBackend

        return HostTarget(get_arch(EMULATED_ARCH), EMULATED_SMS, EmulatorBackend())
    from tilewright.run.cuda import CudaBackend

    try:
        gpu = CudaBackend(HOST_GPU)
    except NoDevice as error:
        raise NoDevice(f"{error}; or pass backend='emulator' to run the same kernels on this CPU") from None
    return HostTarget(gpu.arch, gpu.sm_count, gpu, _card_name(str(gpu.device.name)))


@lru_cache(maxsize=256)
def _compiled_for_cpu(source: KernelSource) -> Binary:
    from tilewright.compile.host import compile_host, host_source

    return compile_host(host_source(source))


def _card_name(device_name: str) -> str | None:
    card = card_of_device(device_name)
    return None if card is None else card.name
