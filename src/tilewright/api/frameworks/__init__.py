"""One small module for each framework whose arrays are supported, and how an array's framework is found."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from typing import Any

from tilewright.api.frameworks.base import Framework
from tilewright.errors import InvalidProblem

MODULES = {"numpy": "numpy_arrays", "torch": "torch_tensors", "cupy": "cupy_arrays", "jax": "jax_arrays"}
"""By a framework's package, the module here that knows its arrays."""
KNOWN: dict[type, Framework] = {}
"""The framework of each type of array that was met before."""


def framework_of(array: Any) -> Framework:
    """The framework whose array this is. Raises InvalidProblem for what is no array."""
    kind = type(array)
    found = KNOWN.get(kind)
    if found is None:
        found = KNOWN[kind] = _find(kind)
    return found


def remember(kinds: Iterable[type], framework: Framework) -> None:
    """Know the framework of these types before an array of theirs is met."""
    KNOWN.update(dict.fromkeys(kinds, framework))


def _find(kind: type) -> Framework:
    packages = [base.__module__.partition(".")[0].removesuffix("lib") for base in kind.__mro__]
    package = next((name for name in packages if name in MODULES), None)
    if package is not None:
        return _framework(MODULES[package])
    if hasattr(kind, "__dlpack__") or hasattr(kind, "__cuda_array_interface__"):
        return _framework("exported")
    raise InvalidProblem(
        f"{kind.__name__}: no array: pass NumPy, torch, CuPy or JAX arrays, or any with DLPack or CUDA array interface"
    )


def _framework(module: str) -> Framework:
    found: Framework = importlib.import_module(f"tilewright.api.frameworks.{module}").FRAMEWORK
    return found
