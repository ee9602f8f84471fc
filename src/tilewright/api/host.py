"""Products of arrays in the host's memory: copied to a device with their strides, multiplied, copied back.

The device is the emulator where it is named, else a GPU.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from tilewright.api.plan import Part, Plan
from tilewright.arch import ArchSpec, get_arch
from tilewright.compile.binary import Binary, KernelSource
from tilewright.compile.nvrtc import compile_cubin
from tilewright.compile.source import kernel_source
from tilewright.errors import NoDevice
from tilewright.run.args import launch_args
from tilewright.run.call import grid_of
from tilewright.run.protocol import Backend, Memory

EMULATED_ARCH, EMULATED_SMS = "sm_90a", 132
"""What the emulator stands for where a config is chosen: an H200."""
GPU_NUMBER = 0


@dataclass(frozen=True, slots=True)
class HostTarget:
    """A device for arrays of the host: what is chosen for, and what runs it. `packed` is why inputs lose their gaps."""

    arch: ArchSpec
    sm_count: int
    packed: str
    device: Backend
    resident_sms: int
    compiled: Callable[[KernelSource], Binary]
    card: str | None = None


@contextlib.contextmanager
def host_target(backend: str | None) -> Iterator[HostTarget]:
    """The device for `backend`. Raises NoDevice where a GPU is meant and there is none."""
    if backend == "emulator":
        from tilewright.run.emulator import EmulatorBackend

        with EmulatorBackend() as emulator:
            yield HostTarget(get_arch(EMULATED_ARCH), EMULATED_SMS, "", emulator, emulator.sm_count, _compiled_for_cpu)
        return
    from tilewright.run.cuda import CudaBackend

    try:
        gpu = CudaBackend(GPU_NUMBER)
    except NoDevice as error:
        raise NoDevice(f"{error}; or pass backend='emulator' to run the same kernels on this CPU") from None
    with gpu:
        packed = "NumPy's arrays lie in the host's memory"
        yield HostTarget(
            gpu.arch, gpu.sm_count, packed, gpu, gpu.sm_count, lambda source: compile_cubin(source, gpu.arch)
        )


@lru_cache(maxsize=256)
def _compiled_for_cpu(source: KernelSource) -> Binary:
    from tilewright.compile.host import compile_host, host_source

    return compile_host(host_source(source))


def launch_on(target: HostTarget, plan: Plan, inputs: Mapping[str, Any], result: Any) -> None:
    """Run every part; `inputs` are 'a', 'b', 'c' and 'bias' by the kernel's names, NumPy arrays or None."""
    device, reads_operands = target.device, plan.parts[0].problem.k > 0
    alignment = plan.parts[0].problem.alignment_bytes
    addresses, held = {"a": 0, "b": 0, "c": 0, "bias": 0}, []
    for name, array in inputs.items():
        if array is None or (name in "ab" and not reads_operands):
            continue
        memory, addresses[name] = _placed(device, name, array, alignment, read_only=True)
        held.append(memory)
    memory, addresses["d"] = _placed(device, "d", result, alignment, read_only=False)
    unread = [*(() if reads_operands else "ab"), *("c" if inputs["c"] is None else ())]
    addresses |= dict.fromkeys(unread, addresses["d"])
    itemsizes = {"a": inputs["a"].itemsize, "b": inputs["a"].itemsize, "c": result.itemsize, "d": result.itemsize}
    for part in plan.parts:
        for offset in part.offsets:
            moved = {name: addresses[name] + step * itemsizes[name] for name, step in offset._asdict().items()}
            _launch(target, part, {**addresses, **moved})
    flat = device.download(memory).view(result.dtype)
    result[...] = _strided(flat, result)


def _launch(target: HostTarget, part: Part, addresses: dict[str, int]) -> None:
    config, problem = part.choice.config, part.problem
    binary = target.compiled(kernel_source(config, problem))
    grid = grid_of(config, problem, sm_count=target.resident_sms)
    target.device.launch(binary, grid, launch_args(config, problem, target.device, **addresses))


def _placed(device: Backend, name: str, array: Any, alignment_bytes: int, *, read_only: bool) -> tuple[Memory, int]:
    """Device memory for the array with its own strides, filled where it is read, and its first element's address."""
    low, high = _reach(array)
    memory = device.alloc(
        (high - low) * array.itemsize, label=name.upper(), alignment_bytes=alignment_bytes, read_only=read_only
    )
    if read_only:
        flat = np.zeros(high - low, array.dtype)
        _strided(flat, array)[...] = array
        device.upload(memory, flat.view(np.uint8))
    return memory, memory.address - low * array.itemsize


def _strided(flat: Any, like: Any) -> Any:
    """`flat`, the stretch of memory that `like` lies in, with the shape and strides of `like`."""
    return as_strided(flat[-_reach(like)[0] :], like.shape, like.strides)


def _reach(array: Any) -> tuple[int, int]:
    """The first element's place and the one past the last, from the address on, in elements."""
    if array.size == 0:
        return 0, 0
    steps = [(size - 1) * stride // array.itemsize for size, stride in zip(array.shape, array.strides, strict=True)]
    return sum(step for step in steps if step < 0), sum(step for step in steps if step > 0) + 1
