"""A person's own kernel in the emulator, from a small declaration: file, entry, geometry, arguments.

Owns the declaration's words and the launch. What text is accepted is `compile.own_kernel`'s.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from tilewright.compile.own_kernel import Parameter, own_kernel_source
from tilewright.compile.traced import compile_traced
from tilewright.emulator.trace import Trace
from tilewright.emulator.tracing import Watch
from tilewright.errors import InvalidInput, LaunchFailed
from tilewright.run.protocol import Grid
from tilewright.run.tracing import TracingBackend

DTYPES = {
    **{"float": "float32", "double": "float64", "half": "float16", "__half": "float16"},
    **{"char": "int8", "unsigned char": "uint8", "short": "int16", "unsigned short": "uint16"},
    **{"int": "int32", "unsigned": "uint32", "unsigned int": "uint32"},
    **{"long long": "int64", "unsigned long long": "uint64", "size_t": "uint64"},
}
MEMBERS: dict[str, Any] = {
    **{"float32": ctypes.c_float, "float64": ctypes.c_double, "int8": ctypes.c_int8, "uint8": ctypes.c_uint8},
    **{"int16": ctypes.c_int16, "uint16": ctypes.c_uint16, "int32": ctypes.c_int32, "uint32": ctypes.c_uint32},
    **{"int64": ctypes.c_int64, "uint64": ctypes.c_uint64},
}
SPECIFICATION = re.compile(r"\s*(\w+)\s*:\s*(const\s+)?([\w ]+?)\s*(?:\[\s*(\d+)\s*\]|=\s*([-+.\w]+))\s*")


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument: an array of `count` elements, which the kernel may not write where `const`, or one `value`."""

    name: str
    cpp_type: str
    count: int | None = None
    value: float | int | None = None
    const: bool = False

    @classmethod
    def parse(cls, text: str) -> Argument:
        """`A:const float[1024]` or `n:int=32`. Raises InvalidInput for another form or type."""
        match = SPECIFICATION.fullmatch(text)
        if match is None:
            raise InvalidInput(
                f"argument {text!r}: must be NAME:TYPE[COUNT] or NAME:TYPE=VALUE, as in A:const float[64]"
            )
        name, const, cpp_type, count, value = match.groups()
        cpp_type = " ".join(cpp_type.split())
        if cpp_type not in DTYPES:
            raise InvalidInput(f"argument {text!r}: type {cpp_type!r}: must be one of {', '.join(DTYPES)}")
        return cls(name, cpp_type, int(count) if count else None, _number(value) if value else None, bool(const))

    @property
    def dtype(self) -> np.dtype[Any]:
        """The element's type."""
        return np.dtype(DTYPES[self.cpp_type])

    @property
    def parameter(self) -> Parameter:
        """How the kernel takes it."""
        is_array = self.count is not None
        return Parameter(self.name, f"{'const ' if self.const else ''}{self.cpp_type}*" if is_array else self.cpp_type)


def _number(text: str) -> float | int:
    try:
        return int(text, 0)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        raise InvalidInput(f"value {text!r}: is no number") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnKernel:
    """A kernel's text and how it is launched. `entry` is its name, or an instance of a template: 'sgemm<64, 8>'."""

    text: str
    file: str
    entry: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    arguments: Sequence[Argument]
    dynamic_smem_bytes: int = 0
    values: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)
    """What arrays hold by name; zeros where nothing is said."""


def trace_kernel(
    kernel: OwnKernel, watch: Watch, *, schedule: str = "default", seed: int = 0
) -> tuple[Trace, LaunchFailed | None]:
    """The trace of one launch, and why it failed if it did.

    Raises InvalidInput for what the emulator cannot take, CompileFailed for what the compiler cannot.
    """
    parameters = [argument.parameter for argument in kernel.arguments]
    binary = compile_traced(own_kernel_source(kernel.text, file=kernel.file, entry=kernel.entry, parameters=parameters))
    with TracingBackend(watch, schedule=schedule, seed=seed) as backend:
        arrays = {}
        for argument in kernel.arguments:
            if argument.count is not None:
                nbytes = argument.count * argument.dtype.itemsize
                arrays[argument.name] = array = backend.alloc(nbytes, label=argument.name, read_only=argument.const)
                backend.upload(array, _contents(kernel, argument))
        passed = _struct(kernel, {name: array.address for name, array in arrays.items()})
        try:
            backend.launch(binary, Grid(kernel.grid, kernel.block, kernel.dynamic_smem_bytes), passed)
        except LaunchFailed as error:
            if not backend.traces:
                raise
            return backend.traces[0], error
        return backend.traces[0], None


def _contents(kernel: OwnKernel, argument: Argument) -> npt.NDArray[np.uint8]:
    given = kernel.values.get(argument.name)
    if given is None:
        return np.zeros((argument.count or 0) * argument.dtype.itemsize, np.uint8)
    return np.ascontiguousarray(given, argument.dtype).reshape(-1).view(np.uint8)


def _struct(kernel: OwnKernel, addresses: Mapping[str, int]) -> ctypes.Structure:
    """The arguments side by side, as the C++ struct of the same members lies in memory."""
    members = [(a.name, ctypes.c_uint64 if a.count is not None else _member(a)) for a in kernel.arguments]
    layout: type[ctypes.Structure] = type("Arguments", (ctypes.Structure,), {"_fields_": members})
    return layout(**{a.name: addresses.get(a.name, _value(a)) for a in kernel.arguments})


def _member(argument: Argument) -> Any:
    return MEMBERS["uint16" if argument.dtype == np.float16 else argument.dtype.name]


def _value(argument: Argument) -> Any:
    """The value as its member holds it; a half by its bits."""
    value = argument.dtype.type(argument.value or 0)
    return int(value.view(np.uint16)) if argument.dtype == np.float16 else value.item()
