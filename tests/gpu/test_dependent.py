"""Chains of kernels on the card, each begun before the one whose result it reads has ended."""

import numpy as np
import pytest

from tilewright.compile.variant import Variant
from tilewright.declare import all_rungs, rung_config
from tilewright.problem import Problem
from tilewright.run.cuda import CudaBackend
from tilewright.run.kernel import bind

pytestmark = pytest.mark.gpu
WAITING = [rung for rung in all_rungs().values() if rung.can_wait]
LINKS = 400


def stored(x, dtype):
    """Small integers as the bytes of `dtype`."""
    wide = np.ascontiguousarray(x, dtype=np.float32)
    return wide.view(np.uint8) if dtype == "float32" else (wide.view(np.uint32) >> 16).astype(np.uint16).view(np.uint8)


def integers(data, dtype):
    """The integers that such bytes hold."""
    wide = data.view(np.float32) if dtype == "float32" else (data.view(np.uint16).astype(np.uint32) << 16).view("f4")
    return wide.astype(np.int64)


@pytest.mark.parametrize("size", [256, 1000])
@pytest.mark.parametrize("rung", WAITING, ids=lambda rung: rung.name)
def test_each_link_of_a_chain_reads_what_the_one_before_has_written(rung, size):
    """X times a permutation matrix, again and again, to and fro between two buffers: exact, and no order may slip."""
    config, kind = rung_config(rung), rung.requires.usual
    dtype = kind.dtype
    problem = Problem(m=size, n=size, k=size, **{**kind._asdict(), "out_dtype": dtype})
    config.require_problem(problem)
    rng = np.random.default_rng(size)
    x, order = rng.integers(-100, 101, (size, size)), rng.permutation(size)
    permutation = np.eye(size)[:, order]  # x @ permutation has column order[j] of x at j
    weights = permutation.T if kind.layout[1] == "T" else permutation
    with CudaBackend() as gpu:
        hosts = [stored(each, dtype).reshape(-1) for each in (x, np.zeros_like(x), weights)]
        memory = [gpu.alloc(host.nbytes, label="X") for host in hosts]
        for device, host in zip(memory, hosts, strict=True):
            gpu.upload(device, host)
        there, back, b = (each.address for each in memory)
        kernel = bind(config, problem, gpu, variant=Variant(dependent=True))
        assert kernel.grid.dependent
        for i in range(LINKS):
            a, d = (there, back) if i % 2 == 0 else (back, there)
            kernel(a=a, b=b, d=d)
        gpu.synchronize()
        found = integers(gpu.download(memory[LINKS % 2]), dtype).reshape(size, size)
    expected = x
    for _ in range(LINKS):
        expected = expected[:, order]
    assert np.array_equal(found, expected)
