"""The wgmma rungs on the card: every width, sizes around every edge, thousands of persistent launches."""

import itertools
import random
from concurrent.futures import ThreadPoolExecutor

import pytest

from tilewright.compile.nvrtc import compile_cubin
from tilewright.compile.source import kernel_source
from tilewright.declare import all_rungs, rung_config
from tilewright.errors import InvalidConfig, InvalidProblem
from tilewright.problem import Problem
from tilewright.run.cuda import CudaBackend
from tilewright.run.kernel import bind
from tilewright.verify.device import DeviceRuns
from tilewright.verify.layers import check_case, make_case
from tilewright.verify.operands import make_operands

pytestmark = pytest.mark.gpu
RUNGS = [rung for rung in all_rungs().values() if "wgmma" in rung.requires.features]
EDGES = (1, 63, 64, 65, 127, 129)


def in_sixteens(elements):
    return -(-elements // 8) * 8


def padded(m, n, k, layout="NT", **other):
    """A BF16 product whose stored rows are padded to multiples of 16 bytes."""
    stored = {"a": (k, m) if layout[0] == "T" else (m, k), "b": (n, k) if layout[1] == "T" else (k, n), "d": (m, n)}
    strides = {f"ld{name}": in_sixteens(width) for name, (_, width) in stored.items()}
    strides |= {f"batch_stride_{name}": rows * in_sixteens(width) for name, (rows, width) in stored.items()}
    return Problem(m=m, n=n, k=k, layout=layout, dtype="bfloat16", out_dtype="bfloat16", **strides, **other)


def is_exact(config, problem, gpu, seed=0):
    config.require_problem(problem)
    return check_case(DeviceRuns(gpu).of(config), make_case("integer", make_operands(problem, "integer", seed=seed)))


@pytest.mark.parametrize("rung", RUNGS, ids=lambda r: r.name)
def test_every_width_that_a_wgmma_takes_is_right_or_refused(rung):
    taken, refused = [], {}
    for width, layout in itertools.product(range(8, 257, 8), ("NT", "NN")):
        problem = padded(200, 2 * width + 9, 168, layout)
        try:
            config = rung_config(rung, {"BN": width})
            config.require_problem(problem)
            taken.append((config, problem))
        except (InvalidConfig, InvalidProblem) as error:
            refused[width, layout] = str(error)
    assert all("BN" in reason or "BM" in reason for reason in refused.values()), refused
    with CudaBackend() as gpu:
        with ThreadPoolExecutor(12) as compiling:
            list(compiling.map(lambda one: compile_cubin(kernel_source(*one), gpu.arch), taken))
        wrong = [str(outcome) for one in taken if not (outcome := is_exact(*one, gpu)).ok]
    assert not wrong
    assert len(taken) >= 8


@pytest.mark.parametrize("rung", RUNGS, ids=lambda r: r.name)
def test_sizes_around_every_edge_are_exact(rung):
    config = rung_config(rung)
    with CudaBackend() as gpu:
        outcomes = [is_exact(config, padded(*sizes), gpu, sum(sizes)) for sizes in itertools.product(EDGES, repeat=3)]
    assert not [str(outcome) for outcome in outcomes if not outcome.ok]


def test_a_depth_that_is_no_multiple_of_a_tile_is_exact_and_unaligned_rows_go_to_the_rung_that_takes_them():
    plain = Problem(m=4096, n=4096, k=588, layout="NT", dtype="bfloat16", out_dtype="bfloat16")
    with CudaBackend() as gpu:
        for rung in RUNGS:
            with pytest.raises(InvalidProblem, match="t04 takes any of 4"):
                rung_config(rung).require_problem(plain)
            assert is_exact(rung_config(rung), padded(4096, 4096, 588), gpu).ok
        assert is_exact(rung_config(all_rungs().find("t04")), plain, gpu).ok


@pytest.mark.parametrize("query", ["t07", "t08"])
def test_ten_thousand_persistent_launches_over_random_shapes_end_and_are_exact(query):
    torch = pytest.importorskip("torch")
    rung, shapes = all_rungs().find(query), random.Random(7)
    configs = [rung_config(rung), rung_config(rung, {"BN": 64, "STAGES": 3, "GROUP_M": 4})]
    make = torch.Generator(device="cuda").manual_seed(3)
    pool = torch.randint(-4, 5, (2, 1 << 22), generator=make, device="cuda").bfloat16()
    with CudaBackend(stream=torch.cuda.current_stream().cuda_stream) as gpu:
        for turn in range(10_000):
            m, n, k = (shapes.randint(1, 2 ** shapes.randint(1, 10)) for _ in range(3))
            problem, config = padded(m, n, k, batch=shapes.choice((1, 1, 3))), shapes.choice(configs)
            a, b = (stored(torch, pool[i], problem, x, turn) for i, x in enumerate("ab"))
            d = torch.full((problem.batch, m, problem.ldd), float("nan"), device="cuda", dtype=torch.bfloat16)
            bind(config, problem, gpu)(a=a.data_ptr(), b=b.data_ptr(), d=d.data_ptr())
            expected = (a[..., :k].float() @ b[..., :k].float().mT).bfloat16()
            assert torch.equal(d[..., :n], expected), (turn, problem, config)


def stored(torch, pool, problem, operand, turn):
    """A view of random integers as operand A or B of an NT product is stored."""
    rows, ld = {"a": (problem.m, problem.lda), "b": (problem.n, problem.ldb)}[operand]
    start = turn * 8 % 1024
    return pool[start : start + problem.batch * rows * ld].view(problem.batch, rows, ld)
