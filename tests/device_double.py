"""A GPU's stand-in for tests of the library call: arrays of its own framework, and a driver that multiplies by NumPy.

The driver reads nothing but what a kernel would be given: the launch's configuration and its argument struct. It holds
a launch to the problem it was chosen for, alignment included.
"""

from __future__ import annotations

import ctypes
import threading
import time
from dataclasses import replace

import numpy as np
from numpy.lib.stride_tricks import as_strided

from tilewright.api import execution, frameworks
from tilewright.api.frameworks.numpy_arrays import NumpyArrays, dtype_of
from tilewright.arch import get_arch
from tilewright.problem import storage_dtype
from tilewright.run.args import GemmArgs, unbound_args
from tilewright.run.cuda_launch import CudaLaunch
from tilewright.run.kernel import Kernel, grid_of

CONTEXT = 0x77


class DoubleArray(np.ndarray):
    """An array on device 0, or on that named by `device`."""

    device = 0


class DoubleArrays(NumpyArrays):
    """The framework of DoubleArray. It has a current stream."""

    name = "double"
    on_host = False
    stream = 5

    def identity(self, array):
        address, signature = super().identity(array)
        return address, (*signature, array.device)

    def describe(self, name, array):
        return replace(super().describe(name, array.view(np.ndarray)), device=array.device)

    def copy(self, array, copy):
        made = super().copy(array, copy)
        turned = made.swapaxes(-1, -2) if copy.by_columns else made
        aligned = self.allocate(turned.shape, made.dtype.name, array.device)
        aligned[...] = turned
        return aligned.swapaxes(-1, -2) if copy.by_columns else aligned

    def broadcast(self, array, shape):
        return np.broadcast_to(array, shape, subok=True)

    def allocate(self, shape, dtype, device):
        count = int(np.prod(shape, dtype=np.int64))
        raw = np.empty(count * 4 + 256, np.uint8)
        start = -raw.ctypes.data % 256
        return raw[start:].view(DoubleArray)[: count * dtype_of(dtype).itemsize].view(dtype_of(dtype)).reshape(shape)

    def finished(self, result):
        return result

    def current_stream(self, device):
        return self.stream

    def using(self, device, stream):
        return _Using(self, stream)


class _Using:
    def __init__(self, framework, stream):
        self.framework, self.stream = framework, stream

    def __enter__(self):
        self.before, self.framework.stream = self.framework.stream, self.stream

    def __exit__(self, *_):
        self.framework.stream = self.before


class DoubleDriver:
    """The driver's functions that a prepared launch calls. `context` is the calling thread's current one."""

    def __init__(self):
        self.kernels, self.launches, self.context, self.stack, self.status = {}, [], CONTEXT, [], 0

    def cuCtxGetCurrent(self, pointer):
        pointer._obj.value = self.context
        return 0

    def cuCtxPushCurrent_v2(self, context):
        self.stack.append(self.context)
        self.context = context.value
        return 0

    def cuCtxPopCurrent_v2(self, pointer):
        self.context = self.stack.pop()
        return 0

    def cuLaunchKernelEx(self, config, function, pointers, extra):
        assert self.context == CONTEXT, "launched in another context"
        problem, grid, args_type = self.kernels[function.value]
        config = config._obj
        assert (config.grid_x, config.grid_y, config.grid_z) == grid.grid
        self.launches.append((problem, config.stream))
        if not self.status:
            multiply(problem, args_type.from_address(pointers._obj[0]))
        return self.status


class MemoryDriver:
    """A driver whose launches say which scratch they had and check that it is theirs.

    `capturing` gives the capture of each stream that is captured; `ids` the id of a stream's handle where that isn't
    the handle itself. `end_capture` lets a graph go. Memory of a capture must be there before it is launched with.
    """

    def __init__(self):
        self.blocks, self.calls, self.launches, self.capturing, self.ids = {}, [], [], {}, {}
        self.status, self.synchronize_status, self.mode = 0, 0, 0
        self.next, self.running, self.graphs, self.objects = 1 << 40, threading.Lock(), {}, {}

    def cuCtxGetCurrent(self, pointer):
        pointer._obj.value = CONTEXT
        return 0

    def cuCtxPushCurrent_v2(self, context):
        return 0

    def cuCtxPopCurrent_v2(self, pointer):
        return 0

    def cuCtxSynchronize(self):
        self.calls.append("synchronize")
        return self.synchronize_status

    def cuStreamGetCaptureInfo_v2(self, stream, status, capture, graph, dependencies, count):
        found = self.capturing.get(stream.value or 0)
        status._obj.value = int(found is not None)
        if found is not None:
            capture._obj.value = found
            if graph is not None:
                graph._obj.value = found
        return 0

    def cuStreamIsCapturing(self, stream, pointer):
        pointer._obj.value = int((stream.value or 0) in self.capturing)
        return 0

    def cuStreamGetId(self, stream, pointer):
        handle = stream.value or 0
        assert handle not in self.capturing, "asking for its id ends a stream's capture"
        made = self.ids.get(handle, handle)
        pointer._obj.value = made() if callable(made) else made
        return 0

    def cuThreadExchangeStreamCaptureMode(self, mode):
        mode._obj.value, self.mode = self.mode, mode._obj.value
        return 0

    def cuStreamCreate(self, stream, flags):
        assert self.mode == 2, "a stream is made in a capture only in the relaxed mode"
        stream._obj.value = 999
        return 0

    def cuStreamSynchronize(self, stream):
        self.calls.append("wait")
        return 0

    def _alloc(self, pointer, size, stream):
        self.next += 1 << 32
        pointer._obj.value = self.next
        self.blocks[self.next] = {"bytes": size.value, "zeroed": 0, "stream": stream}
        self.calls.append("alloc")
        return 0

    def cuMemAllocAsync(self, pointer, size, stream):
        assert not self.capturing.get(stream.value or 0), "an allocation would be a node of the graph"
        return self._alloc(pointer, size, stream.value or 0)

    def cuMemAlloc_v2(self, pointer, size):
        assert self.mode == 2, "memory is allocated in a capture only in the relaxed mode"
        return self._alloc(pointer, size, None)

    def cuMemsetD32Async(self, address, value, words, stream):
        assert value.value == 0 and not self.capturing.get(stream.value or 0), "clearing would be a node of the graph"
        self.blocks[address.value]["zeroed"] = 4 * words.value
        self.calls.append("zero")
        return 0

    def cuMemFreeAsync(self, address, stream):
        assert self.blocks.pop(address.value)["stream"] == (stream.value or 0)
        self.calls.append("free")
        return 0

    def cuMemFree_v2(self, address):
        del self.blocks[address.value]
        self.calls.append("free")
        return 0

    def cuUserObjectCreate(self, made, pointer, destructor, count, flags):
        made._obj.value = len(self.objects) + 1
        self.objects[made._obj.value] = pointer, destructor
        assert count.value == 1
        return 0

    def cuGraphRetainUserObject(self, graph, user_object, count, flags):
        self.graphs.setdefault(graph.value, []).append(user_object.value)
        return 0

    def end_capture(self, capture):
        """End a capture, its graph and all instances of it."""
        self.capturing = {stream: other for stream, other in self.capturing.items() if other != capture}
        for number in self.graphs.pop(capture):
            pointer, destructor = self.objects.pop(number)
            destructor(pointer)

    def cuLaunchKernelEx(self, config, function, pointers, extra):
        assert self.running.acquire(blocking=False), "the scratch of two launches at once"
        args, stream = GemmArgs.from_address(pointers._obj[0]), config._obj.stream or 0
        block = self.blocks[args.flags]
        assert block["stream"] in (stream, None) and args.workspace % 256 == 0
        assert args.workspace - args.flags >= block["zeroed"] > 0, "flags that a workspace covers, or not zeroed"
        time.sleep(1e-4)
        self.calls.append("launch")
        self.launches.append((stream, args.flags, args.flags + block["bytes"] - args.workspace))
        self.running.release()
        return self.status


def multiply(problem, args):
    """What a kernel for `problem` does with `args`, read as it would read them."""
    assert (args.m, args.n, args.k, args.batch) == (problem.m, problem.n, problem.k, problem.batch)
    used = [args.d, *([args.a, args.b] if problem.k else []), *([args.c] if problem.reads_c else [])]
    assert all(address % problem.alignment_bytes == 0 for address in used), "less aligned than the problem says"
    result = np.zeros((problem.batch, problem.m, problem.n))
    if problem.k:
        a, b = (_matrices(problem, args, name, problem.dtype) for name in "ab")
        result = args.alpha * (a.astype(np.float64) @ b.astype(np.float64))
    if problem.reads_c:
        result = result + args.beta * _matrices(problem, args, "c", problem.out_dtype).astype(np.float64)
    bias = None
    if problem.epilogue.needs_bias:
        bias = _memory(args.bias, problem.n, problem.dtype).astype(np.float64)
    _matrices(problem, args, "d", problem.out_dtype)[...] = problem.epilogue.reference(result, bias)


def _matrices(problem, args, name, dtype):
    rows, columns = problem.stored_shape(name)
    flat = _memory(getattr(args, name), problem.total_extent(name), dtype)
    steps = (getattr(args, f"batch_stride_{name}"), getattr(args, f"ld{name}"), 1)
    view = as_strided(flat, (problem.batch, rows, columns), [step * flat.itemsize for step in steps])
    return view.swapaxes(1, 2) if name in "ab" and problem.layout["ab".index(name)] == "T" else view


def _memory(address, count, dtype):
    of = dtype_of(storage_dtype(dtype))
    raw = (ctypes.c_uint8 * (count * of.itemsize)).from_address(address)
    return np.frombuffer(raw, np.uint8).view(of)


class DoubleTarget:
    """A GpuTarget whose kernels are problems."""

    arch, sm_count, card = get_arch("sm_90a"), 132, "H200"

    def __init__(self, driver):
        self.driver, self.loaded, self.captured = driver, [], set()

    def is_capturing(self, stream):
        return stream in self.captured

    def bind(self, part, stream):
        self.loaded.append(part)
        config, problem = part.choice.config, part.problem
        grid = grid_of(config, problem, sm_count=self.sm_count)
        args = unbound_args(problem, has_maps=False)
        number = len(self.driver.kernels) + 1
        self.driver.kernels[number] = problem, grid, type(args)
        return Kernel(config, problem, None, None, grid, CudaLaunch(number, CONTEXT, grid, args, driver=self.driver))


def install(monkeypatch):
    """Make DoubleArray a framework on this target, with nothing planned yet; gives the target."""
    target = DoubleTarget(DoubleDriver())
    monkeypatch.setattr(execution, "gpu_target", lambda device: target)
    monkeypatch.setattr(execution, "kept", {})
    monkeypatch.setitem(frameworks.KNOWN, DoubleArray, DoubleArrays())
    return target


def on_double(host):
    """A copy of a NumPy array's bytes as a DoubleArray with the same strides where they are a plain buffer's."""
    return host.view(DoubleArray)
