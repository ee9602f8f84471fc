"""Kernels name only `Scalar`: with the integers modulo a prime in its place every rung computes exactly, at any k."""

import ctypes
import dataclasses

import numpy as np
import pytest

from tilewright.compile.host import compile_host, host_source
from tilewright.compile.source import kernel_source
from tilewright.declare import rung_config, rungs
from tilewright.problem import Problem
from tilewright.run.args import GemmArgs, gemm_args
from tilewright.run.call import grid_of
from tilewright.run.emulator import EmulatorBackend

PRIME = 2**31 - 1
TRAIT = """
struct Mod31 {
  using storage = unsigned;
  using accumulate = unsigned;
  static accumulate mod(unsigned long long x) { return static_cast<unsigned>(x % 2147483647ull); }
  static accumulate zero() { return 0; }
  static storage storage_zero() { return 0; }
  static accumulate load(const storage* p) { return *p; }
  static accumulate widen(storage x) { return x; }
  static storage round(accumulate x) { return x; }
  static accumulate fma(accumulate a, accumulate b, accumulate c) { return mod(1ull * a * b + c); }
  static accumulate mul(accumulate a, accumulate b) { return mod(1ull * a * b); }
  static accumulate add(accumulate a, accumulate b) { return mod(1ull * a + b); }
};
using Scalar = Mod31;
"""


class ModArgs(GemmArgs):
    """The same bytes; alpha and beta are written as field elements."""

    def with_scales(self, alpha: int, beta: int):
        for name, value in (("alpha", alpha), ("beta", beta)):
            offset = getattr(GemmArgs, name).offset
            ctypes.c_uint32.from_buffer(self, offset).value = value
        return self


def reference(a, b, c, alpha, beta):
    product = np.zeros((a.shape[0], b.shape[1]), dtype=object)
    for k in range(a.shape[1]):
        product = (product + np.outer(a[:, k].astype(object), b[k].astype(object))) % PRIME
    return ((alpha * product + beta * c.astype(object)) % PRIME).astype(np.uint32)


@pytest.mark.parametrize("rung", [r for r in rungs().values() if r.source], ids=lambda r: r.name)
def test_a_rung_over_a_prime_field_is_exact_on_full_range_operands(rung):
    config = rung_config(rung)
    m, n, k = (128, 128, 96) if rung.unguarded_when is None else (33, 65, 47)
    problem = Problem(m=m, n=n, k=k, beta=1.0)
    source = kernel_source(config, problem)
    text = source.text.replace("using Scalar = tilewright::F32;", TRAIT)
    assert text != source.text
    binary = compile_host(host_source(dataclasses.replace(source, text=text)))
    rng = np.random.default_rng(1)
    a, b, c = (rng.integers(0, PRIME, shape, dtype=np.uint32) for shape in ((m, k), (k, n), (m, n)))
    alpha, beta = 1234567890, 987654321
    with EmulatorBackend() as device:
        memory = {}
        for label, host in (("A", a), ("B", b), ("C", c)):
            memory[label] = device.alloc(host.nbytes, label=label, read_only=True)
            device.upload(memory[label], host.reshape(-1).view(np.uint8))
        d = device.alloc(m * n * 4, label="D")
        plain = gemm_args(problem, a=memory["A"].address, b=memory["B"].address, c=memory["C"].address, d=d.address)
        args = ModArgs.from_buffer_copy(plain).with_scales(alpha, beta)
        device.launch(binary, grid_of(config, problem), args)
        got = device.download(d).view(np.uint32).reshape(m, n)
    assert np.array_equal(got, reference(a, b, c, alpha, beta))
