"""The check of large products, in the emulator: it accepts A·B and notices a single element."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.arch import get_arch
from tilewright.compile.host import compile_host, host_source
from tilewright.compile.nvrtc import compile_cubin
from tilewright.errors import InvalidProblem
from tilewright.problem import Problem, storage_dtype
from tilewright.run.emulator import EmulatorBackend
from tilewright.verify.freivalds import GUARD, FreivaldsCheck, Kernels, Placed, integers
from tilewright.verify.freivalds.check import hashes
from tilewright.verify.freivalds.kernels import source


class Bench:
    """Operands of one problem in the emulator, their check, and a product by NumPy that can be spoiled."""

    def __init__(self, backend: EmulatorBackend, problem: Problem) -> None:
        self.backend, self.problem = backend, problem
        kernels = Kernels(backend, lambda text: compile_host(host_source(text)), backend.sm_count)
        self.check = FreivaldsCheck(backend, kernels)
        self.dtype = {x: np.dtype(storage_dtype(problem.dtype if x in "ab" else problem.out_dtype)) for x in "abd"}
        self.memory = {
            x: backend.alloc(
                (problem.extent(x) + (2 * GUARD if x == "d" else 0)) * self.dtype[x].itemsize, label=x.upper()
            )
            for x in "abd"
        }
        d = self.memory["d"].address + GUARD * self.dtype["d"].itemsize
        self.placed = Placed(self.memory["a"].address, self.memory["b"].address, d)
        self.check.prepare(problem, self.placed)

    def host(self, name: str) -> np.ndarray:
        return self.backend.download(self.memory[name]).view(self.dtype[name])

    def operand(self, name: str) -> np.ndarray:
        stored = self.host(name).reshape(self.problem.stored_shape(name)).astype(np.float64)
        return stored.T if self.problem.layout["ab".index(name)] == "T" else stored

    def complaint(self, spoil=lambda d: None, name: str = "d") -> str:
        def launch() -> None:
            whole = self.host("d")
            whole[GUARD:-GUARD] = (self.operand("a") @ self.operand("b")).astype(whole.dtype).reshape(-1)
            self.backend.upload(self.memory["d"], whole.view(np.uint8))
            flat = self.host(name)
            spoil(flat)
            self.backend.upload(self.memory[name], flat.view(np.uint8))

        return self.check.complaint(self.problem, self.placed, launch)


@pytest.fixture(scope="module")
def backend():
    with EmulatorBackend() as opened:
        yield opened


SIZES = {"m": 37, "n": 19, "k": 53}


@pytest.mark.parametrize(
    ("layout", "dtype"), [("NN", "float32"), ("NT", "bfloat16"), ("TN", "float16"), ("TT", "float32")]
)
def test_the_product_passes_in_every_layout_and_type(backend, layout, dtype):
    bench = Bench(backend, Problem(**SIZES, layout=layout, dtype=dtype, out_dtype=dtype))
    assert bench.complaint() == ""


@pytest.mark.parametrize(("dtype", "at"), [("float32", 0), ("float32", 19 * 37 - 1), ("bfloat16", 19 * 5 + 7)])
def test_one_wrong_element_is_found_in_its_row(backend, dtype, at):
    bench = Bench(backend, Problem(**SIZES, dtype=dtype, out_dtype=dtype))

    def off_by_one(d):
        d[GUARD + at] += 1

    assert bench.complaint(off_by_one) == f"1 of 37 rows are not those of A·B, the first is row {at // 19}"


@pytest.mark.parametrize("value", [np.nan, 0.5])
def test_two_elements_that_are_no_integers_do_not_cancel(backend, value):
    bench = Bench(backend, Problem(**SIZES))

    def two(d):
        d[GUARD : GUARD + 2] = value

    assert "1 of 37 rows" in bench.complaint(two)


def test_two_rows_exchanged_are_two_wrong_rows(backend):
    bench = Bench(backend, Problem(**SIZES))

    def exchange(d):
        d[GUARD : GUARD + 38] = np.roll(d[GUARD : GUARD + 38], 19)

    assert bench.complaint(exchange).startswith("2 of 37 rows")


@pytest.mark.parametrize(("at", "side"), [(GUARD - 1, "before"), (-GUARD, "after")])
def test_a_store_outside_d_is_found(backend, at, side):
    bench = Bench(backend, Problem(**SIZES))

    def outside(d):
        d[at] = 1.0

    assert bench.complaint(outside) == f"wrote outside D: {side}"


@pytest.mark.parametrize("name", ["a", "b"])
def test_a_modified_operand_is_found(backend, name):
    bench = Bench(backend, Problem(**SIZES))

    def modify(operand):
        operand[-1] += 1

    assert bench.complaint(modify, name) == "A or B was modified"


@pytest.mark.parametrize(("dtype", "k"), [("float32", 53), ("float32", 2**21), ("bfloat16", 5000), ("float16", 5000)])
def test_sums_stay_exact_and_every_edge_of_k_takes_part(dtype, k):
    filling = integers(Problem(m=1, n=1, k=k, dtype=dtype, out_dtype=dtype))
    largest = {"float32": 2**24, "bfloat16": 256, "float16": 2048}[dtype]
    if dtype == "float32":
        assert k * filling.high**2 <= largest and filling.kept == 1.0
    else:
        terms = min(k, filling.kept * k + 2 * filling.edge)
        assert 8 * terms**0.5 <= largest and (filling.kept == 1.0 or filling.edge == 8)


def test_data_have_the_magnitudes_and_zeros_that_were_asked_for(backend):
    bench = Bench(backend, Problem(m=8, n=8, k=3000, dtype="bfloat16", out_dtype="bfloat16"))
    a, b = bench.operand("a"), bench.operand("b")
    assert set(np.unique(a)) == {-1.0, 0.0, 1.0} and set(np.unique(b)) == {-1.0, 1.0}
    assert (a[:, :8] != 0).all() and (a[:, -8:] != 0).all() and 0.25 < (a != 0).mean() < 0.45


def test_the_host_knows_the_devices_weights():
    x = (5 + 7) * 0x9E3779B97F4A7C15 % 2**64
    x = (x ^ (x >> 32)) * 0xD6E8FEB86659FD93 % 2**64
    assert int(hashes(6, 7)[5]) == x ^ (x >> 32)


@pytest.mark.parametrize("changes", [{"beta": 1.0}, {"alpha": 2.0}, {"batch": 2}, {"ldd": 20}])
def test_what_it_cannot_check_is_refused(changes):
    with pytest.raises(InvalidProblem, match="takes A·B alone"):
        integers(Problem(**SIZES, **changes))
    with pytest.raises(InvalidProblem, match="use a smaller k"):
        integers(Problem(m=1, n=1, k=2**25))


@pytest.mark.parametrize("kernel", ["fill", "weigh"])
def test_both_kernels_compile_for_a_gpu_without_spills(kernel):
    made = compile_cubin(source(kernel, "bfloat16"), get_arch("sm_90a")).resources
    assert made is not None and made.spill_bytes == 0 and made.stack_bytes == 0
