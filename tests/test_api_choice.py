"""What the library call makes of a choice: the framework's product in a kernel's place, tuning at a first use."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import device_double
import tilewright as tw
from device_double import DoubleArray, DoubleArrays
from tilewright.api import execution, frameworks, plan
from tilewright.api.torch.settings import may_replace_kernel
from tilewright.select import choose


class Multiplying(DoubleArrays):
    """Arrays with a product of their own; `settings` are as good as nothing where `promises` is False."""

    multiplies, promises = True, True

    def __init__(self):
        self.products = []

    def product(self, a, b, bias, out, dtype):
        if not self.promises:
            return None
        self.products.append((dtype, self.stream))
        result = np.matmul(a, b, out=out)
        return result if bias is None else np.add(result, bias, out=result)


@pytest.fixture
def target(monkeypatch):
    return device_double.install(monkeypatch)


@pytest.fixture
def framework(target, monkeypatch):
    """A framework whose product was measured to be faster whatever is multiplied."""

    def faster(problem, *card, kernels, **more):
        found = choose(problem, *card, kernels=kernels, **more)
        return replace(found, library="half the time" if kernels == "all" else "")

    made = Multiplying()
    monkeypatch.setitem(frameworks.KNOWN, DoubleArray, made)
    monkeypatch.setattr(plan, "choose", faster)
    return made


def integers(*shape, dtype="float32"):
    made = DoubleArrays().allocate(shape, dtype, 0)
    made[...] = np.random.default_rng(1).integers(-4, 5, shape)
    return made


def test_the_frameworks_product_is_taken_where_it_is_faster(framework, target):
    a, b, out = integers(6, 4), integers(4, 5), integers(6, 5)
    for _ in range(2):
        out[...] = 0
        assert tw.matmul(a, b, out=out) is out and np.array_equal(out, a @ b)
        assert np.array_equal(tw.matmul(a, b), a @ b)
        assert np.array_equal(tw.gemm(a, b, out=out, stream=9), a @ b)
    assert framework.products == [("float32", 5), ("float32", 5), ("float32", 9)] * 2 and not target.driver.launches


def test_no_kernel_is_compiled_for_a_product_that_the_framework_takes_until_it_refuses(framework, target):
    a, b = integers(6, 4), integers(4, 5)
    target.captured = {DoubleArrays.stream}
    for promises, loaded in ((True, 0), (False, 1), (False, 1), (True, 1)):
        framework.promises = promises
        assert np.array_equal(tw.matmul(a, b), a @ b)
        assert len(target.loaded) == loaded


def test_a_bias_goes_to_the_frameworks_product_with_the_operands(framework, target):
    a, b, bias = integers(6, 4), integers(4, 5), integers(5)
    for out in (None, integers(6, 5)):
        assert np.array_equal(tw.gemm(a, b, bias=bias, out=out), a @ b + bias)
    assert len(framework.products) == 2 and not target.driver.launches


def test_a_plan_says_that_the_frameworks_product_is_taken_and_executes_it(framework, target):
    a, b, out = integers(6, 4), integers(4, 5), integers(6, 5)
    with tw.Gemm(a, b, out=out) as product:
        assert str(product.plan()).endswith("the framework's own product is taken in its place: half the time")
        assert product.execute() is out and np.array_equal(out, a @ b)
    assert len(framework.products) == 1 and not target.driver.launches


def test_own_kernels_are_taken_where_they_are_asked_for(framework, target):
    a, b = integers(6, 4), integers(4, 5)
    assert np.array_equal(tw.matmul(a, b, kernels="own"), a @ b)
    assert not framework.products and len(target.driver.launches) == 1


def test_a_framework_whose_settings_promise_something_else_is_passed_over_each_time(framework, target):
    a, b, out = integers(6, 4), integers(4, 5), integers(6, 5)
    for promises in (True, False, True, False):
        framework.promises = promises
        assert np.array_equal(tw.matmul(a, b, out=out), a @ b)
    assert len(framework.products) == len(target.driver.launches) == 2


@pytest.mark.parametrize(
    ("operands", "is_taken"),
    [
        (lambda: (integers(6, 4)[:, ::-1], integers(4, 5), None), True),
        (lambda: (integers(3, 1, 6, 4), integers(2, 4, 5), None), True),
        (lambda: (integers(6, 4), integers(4, 5), integers(6, 10)[:, ::2]), False),
    ],
    ids=["a copy", "several launches", "a temporary"],
)
def test_the_frameworks_product_is_taken_whatever_the_strides_where_it_may_write_to_out(
    framework, target, operands, is_taken
):
    a, b, out = operands()
    assert np.array_equal(tw.matmul(a, b, out=out), np.matmul(a, b))
    assert bool(framework.products) == is_taken == (not target.driver.launches)


def test_the_frameworks_product_is_not_taken_for_arrays_that_overlap_out(framework, target):
    buffer = integers(32, 8)
    a, b, out = buffer[:8], integers(8, 8), buffer[4:12]
    wanted = np.array(a) @ b
    assert np.array_equal(tw.matmul(a, b, out=out), wanted)
    assert not framework.products and target.driver.launches


def test_a_framework_without_a_product_is_not_asked_for_one(framework, target, monkeypatch):
    monkeypatch.setattr(Multiplying, "multiplies", False)
    a, b = integers(6, 4), integers(4, 5)
    assert np.array_equal(tw.matmul(a, b), a @ b)
    assert not framework.products and target.loaded[0].choice.library == ""


@pytest.mark.parametrize(
    ("dtype", "settings", "is_meant"),
    [
        ("float32", {"allow_tf32": False}, True),
        ("float32", {"allow_tf32": True}, False),
        ("tfloat32", {"allow_tf32": True}, True),
        ("float32", {"fp32_precision": "ieee"}, True),
        ("tfloat32", {"fp32_precision": "ieee"}, False),
        ("bfloat16", {"allow_bf16_reduced_precision_reduction": True}, True),
        ("bfloat16", {"allow_bf16_reduced_precision_reduction": False}, True),
        ("float16", {"allow_fp16_reduced_precision_reduction": False, "allow_fp16_accumulation": True}, True),
    ],
)
def test_torchs_product_may_be_taken_for_the_same_arithmetic_and_in_16_bits_as_torch_is_set(
    dtype, settings, is_meant, monkeypatch
):
    class Matmul(SimpleNamespace):
        @property
        def allow_tf32(self):
            if "fp32_precision" in settings:
                raise RuntimeError("mix of the legacy and new APIs")
            return settings["allow_tf32"]

    given = Matmul(**{name: value for name, value in settings.items() if name != "allow_tf32"})
    torch = SimpleNamespace(backends=SimpleNamespace(cuda=SimpleNamespace(matmul=given)))
    monkeypatch.delenv("NVIDIA_TF32_OVERRIDE", raising=False)
    assert may_replace_kernel(dtype, torch) == is_meant
    monkeypatch.setenv("NVIDIA_TF32_OVERRIDE", "1")
    assert may_replace_kernel(dtype, torch) == (is_meant and "float32" not in dtype)


# Tuning at a first use.


@pytest.fixture
def searched(monkeypatch):
    """The problems that were searched, which count as tuned from then on."""
    found = []

    def tuned(problem, *card, **more):
        return replace(choose(problem, *card, **more), tuned=problem in found)

    monkeypatch.setenv("TILEWRIGHT_AUTOTUNE", "on")
    monkeypatch.setattr(plan, "choose", tuned)
    monkeypatch.setattr(execution, "tune_first_use", lambda problem, choice, device: found.append(problem))
    return found


def test_a_first_use_is_tuned_and_planned_with_what_was_found(target, searched):
    a, b = integers(6, 4), integers(4, 5)
    for _ in range(2):
        assert np.array_equal(tw.matmul(a, b), a @ b)
    tw.Gemm(a, b).plan()
    assert [(p.m, p.n, p.k) for p in searched] == [(6, 5, 4)]
    assert all(part.choice.tuned for part in target.loaded)


def test_nothing_is_tuned_in_a_capture_and_the_first_use_after_it_is(target, searched):
    a, b = integers(6, 4), integers(4, 5)
    target.captured = {DoubleArrays.stream}
    for _ in range(2):
        assert np.array_equal(tw.matmul(a, b), a @ b)
    assert not searched
    target.captured = set()
    assert np.array_equal(tw.matmul(a, b), a @ b)
    assert len(searched) == 1


@pytest.mark.parametrize("mode", ["off", "readonly"])
def test_nothing_is_tuned_unless_it_is_asked_for(target, searched, monkeypatch, mode):
    monkeypatch.setenv("TILEWRIGHT_AUTOTUNE", mode)
    tw.matmul(integers(6, 4), integers(4, 5))
    assert not searched


def test_a_rung_that_slices_k_serves_arrays_of_the_host_too():
    a, b = np.asarray(integers(8, 260)), np.asarray(integers(260, 40))
    product = tw.Gemm(a, b, backend="emulator")
    assert product.plan().parts[0].choice.config.rung.scratch is not None
    assert np.array_equal(product.execute(), a @ b)
