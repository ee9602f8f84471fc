"""Library calls as arms: which tensors they are given, in which stream and precision, and what else the call names."""

from __future__ import annotations

import contextlib
import sys
from types import SimpleNamespace

import pytest

from tilewright.errors import Missing
from tilewright.lab import suite_calls
from tilewright.lab.suite_calls import TorchCalls
from tilewright.lab.suite_machine import Call
from tilewright.measure.baseline_torch import torch_with_gpu
from tilewright.problem import Problem

SETS = [(1000, 2000, 3000, 3000), (5000, 6000, 7000, 7000)]
NT = Problem(m=4, n=8, k=16, layout="NT")


class Torch:
    """Tensors are what they were made of; products are noted with the stream and TF32 switch they were called under."""

    def __init__(self):
        self.called, self.streams = [], []
        self.backends = SimpleNamespace(cuda=SimpleNamespace(matmul=SimpleNamespace(allow_tf32=False)))
        self.cuda = SimpleNamespace(ExternalStream=lambda handle: handle, stream=self._on)

    @contextlib.contextmanager
    def _on(self, stream):
        self.streams.append(stream)
        yield
        self.streams.pop()

    def as_tensor(self, data, device):
        seen = data.__cuda_array_interface__
        return SimpleNamespace(data_ptr=lambda: seen["data"][0], shape=seen["shape"], strides=seen["strides"])

    def get_float32_matmul_precision(self):
        return "highest"

    def mm(self, a, b, *, out):
        self.note("torch.mm", a, b, out)

    def note(self, name, *tensors, **named):
        at = tuple(tensor.data_ptr() for tensor in tensors)
        self.called.append((name, at, list(self.streams), self.backends.cuda.matmul.allow_tf32, named))


@pytest.fixture
def torch(monkeypatch):
    made = Torch()
    monkeypatch.setattr(suite_calls, "matmul", lambda a, b, *, out, **named: made.note("matmul", a, b, out, **named))
    return made


def test_both_products_get_the_same_tensors_on_the_timers_stream(torch):
    calls = TorchCalls(torch)
    arms = [calls.arm("chosen", Call("all"), NT, SETS), calls.baseline_arm(NT, SETS)]
    with calls.current(NT, SimpleNamespace(handle=7)):
        for slot in (0, 1):
            for arm in arms:
                arm.launch(slot, "a stream")
    assert torch.called == [(name, (a, b, d), [7], False, {}) for a, b, _, d in SETS for name in ("matmul", "torch.mm")]
    assert torch.streams == []


def test_tensors_lie_as_the_problem_does(torch):
    a, b, out = TorchCalls(torch)._tensors(NT, SETS[0])
    assert (a.shape, a.strides) == ((4, 16), (64, 4))
    assert (b.shape, b.strides) == ((16, 8), (4, 64))  # stored transposed
    assert (out.shape, out.strides) == ((4, 8), (32, 4))


@pytest.mark.parametrize(
    ("dtype", "kernels", "named"),
    [
        ("float32", "all", {}),
        ("float32", "own", {"kernels": "own"}),
        ("tfloat32", "all", {"compute_type": "tf32"}),
        ("tfloat32", "own", {"kernels": "own", "compute_type": "tf32"}),
    ],
)
def test_a_call_names_what_is_not_the_default_and_torch_multiplies_in_the_same_precision(torch, dtype, kernels, named):
    calls, problem = TorchCalls(torch), Problem(m=4, n=8, k=16, layout="NT", dtype=dtype)
    with calls.current(problem, SimpleNamespace(handle=7)):
        calls.arm("chosen", Call(kernels), problem, SETS).launch(0, "a stream")
    assert torch.called == [("matmul", (1000, 2000, 3000), [7], dtype == "tfloat32", named)]
    assert not torch.backends.cuda.matmul.allow_tf32


def test_calls_need_a_torch_that_sees_a_gpu(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(Missing, match="torch: "):
        torch_with_gpu()
