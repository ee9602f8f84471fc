"""What a kernel is compared with: cuBLAS in IEEE float32, in TF32, or on 16-bit elements with float32 sums.

Owns the choice of library, what a baseline can do, and the proof that TF32 is off or on. The calls themselves are
in `baseline_torch` and `baseline_cublas`; nothing here is timed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from tilewright.errors import InvalidProblem, Missing, WrongResult
from tilewright.problem import Problem, storage_dtype
from tilewright.run.protocol import Backend, Memory

HOW_TO = (
    'install one of: torch with CUDA, CuPy (pip install cupy-cuda13x), or nvmath (pip install "tilewright[baseline]")'
)
BASELINE = "cuBLAS"
"""What its arm and its row are called."""
PROOF_SIZES = (1, 256, 1024)


class Baseline(Protocol):
    """A library's product of matrices at raw device addresses."""

    @property
    def name(self) -> str:
        """What it is, for tables: 'cuBLAS (torch)'."""
        ...

    @property
    def version(self) -> str:
        """The library's version, for records."""
        ...

    def gemm(self, problem: Problem, a_addr: int, b_addr: int, c_addr: int, d_addr: int, stream: Any) -> None:
        """Queue D = alpha · op(A) · op(B) + beta · C on the `cuda.core.Stream` and return without waiting.

        Addresses are of row-major arrays with the problem's leading dimensions and batch strides;
        C is not read where beta is 0 and may be D itself. The stream's device must be
        current. Raises InvalidProblem as `check_problem` does.
        """
        ...


def find_baseline() -> tuple[Baseline | None, str]:
    """The best baseline this machine has (torch, then CuPy, then nvmath), or None and why, with how to get one."""
    from tilewright.measure import baseline_cublas, baseline_torch

    reasons = []
    for open_library in (baseline_torch.open_torch, baseline_cublas.open_cupy, baseline_cublas.open_nvmath):
        try:
            return open_library(), ""
        except Missing as error:
            reasons.append(str(error))
    return None, f"no cuBLAS baseline ({'; '.join(reasons)}); {HOW_TO}"


def told(baseline: Baseline | None) -> str | None:
    """The baseline's name and version in one line, for records."""
    return None if baseline is None else f"{baseline.name}, {baseline.version}"


def check_problem(problem: Problem, dtypes: Sequence[str] = ("float32",)) -> None:
    """Raises InvalidProblem unless a plain cuBLAS product computes all of the problem, in one of the types."""
    if problem.dtype not in dtypes or problem.out_dtype != storage_dtype(problem.dtype):
        raise InvalidProblem(
            f"dtype={problem.dtype}, out_dtype={problem.out_dtype}: the baseline takes {', '.join(dtypes)}, "
            "the result in the operands' type"
        )
    if problem.epilogue.ops:
        raise InvalidProblem(f"epilogue {problem.epilogue.ops}: the baseline has none; compare without an epilogue")
    if problem.k == 0:
        raise InvalidProblem("k=0: there is nothing to multiply, so no baseline to compare with; use k of 1 or more")


def prove_ieee(baseline: Baseline, backend: Backend, stream: Any) -> None:
    """Multiply half-integers from 1024.5 to 2047.5 by the identity, from either side: exact unless rounded to TF32.

    TF32 keeps 10 bits after the leading one, so each of them would change. Allocates on `backend`, about
    26 MB. Raises WrongResult at the first difference.
    """
    for size in PROOF_SIZES:
        halves = _halves(size)
        identity = np.eye(size, dtype=np.float32)
        for a, b in ((halves, identity), (identity, halves)):
            got = _product(baseline, backend, stream, a, b)
            if not np.array_equal(got, halves):
                row, col = np.argwhere(got != halves)[0]
                raise WrongResult(
                    f"{baseline.name} {baseline.version}: {halves[row, col]} · 1 came back as {got[row, col]} at "
                    f"{size}×{size}×{size}: it does not multiply in IEEE float32, so TF32 is probably on; unset "
                    "NVIDIA_TF32_OVERRIDE and whatever else enables it"
                )


def prove_tf32(baseline: Baseline, backend: Backend, stream: Any) -> None:
    """The same product once, asked for in TF32, which must change them. Raises WrongResult where it doesn't."""
    size = PROOF_SIZES[-1]
    halves = _halves(size)
    if np.array_equal(_product(baseline, backend, stream, halves, np.eye(size, dtype=np.float32), "tfloat32"), halves):
        raise WrongResult(
            f"{baseline.name} {baseline.version}: {halves[0, 0]} · 1 came back exact at {size}×{size}×{size}: it does "
            "not multiply in TF32, so a kernel that does cannot be held against it; unset NVIDIA_TF32_OVERRIDE"
        )


def _halves(size: int) -> npt.NDArray[np.float32]:
    return (1024.5 + np.arange(size * size, dtype=np.float32) % 1024).reshape(size, size)


def _product(
    baseline: Baseline,
    backend: Backend,
    stream: Any,
    a: npt.NDArray[np.float32],
    b: npt.NDArray[np.float32],
    dtype: str = "float32",
) -> npt.NDArray[np.float32]:
    size = a.shape[0]
    operands = [_upload(backend, label, host) for label, host in (("A", a), ("B", b), ("D", np.full_like(a, np.nan)))]
    backend.synchronize()
    a_addr, b_addr, d_addr = (memory.address for memory in operands)
    baseline.gemm(Problem(m=size, n=size, k=size, dtype=dtype), a_addr, b_addr, 0, d_addr, stream)
    stream.sync()
    return backend.download(operands[2])[: a.nbytes].view(np.float32).reshape(size, size)


def _upload(backend: Backend, label: str, host: npt.NDArray[np.float32]) -> Memory:
    memory = backend.alloc(host.nbytes, label=label)
    backend.upload(memory, np.ascontiguousarray(host).reshape(-1).view(np.uint8))
    return memory
