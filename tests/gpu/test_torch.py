"""torch's side of the library call: operators, gradients, autocast, compiling, the drop-in layer."""

import pytest

import tilewright as tw
from tilewright.errors import InvalidProblem

pytestmark = pytest.mark.gpu
torch = pytest.importorskip("torch")

SHAPES = [
    ((33, 7), (7, 65)),
    ((7,), (7, 65)),
    ((33, 7), (7,)),
    ((7,), (7,)),
    ((2, 33, 7), (7, 65)),
    ((2, 1, 33, 7), (1, 3, 7, 5)),
    ((33, 7), (2, 7, 5)),
]


@pytest.fixture(scope="module")
def ours():
    import tilewright.torch

    return tilewright.torch


def integers(*shape, dtype=torch.float32, most=4, requires_grad=False):
    made = torch.randint(-most, most + 1, shape, device="cuda").to(dtype)
    return made.requires_grad_(requires_grad)


def test_the_operators_pass_torchs_own_check(ours):
    a, b = integers(33, 7), integers(7, 65)
    with_gradients = integers(33, 7, requires_grad=True), integers(7, 65, requires_grad=True)
    for left, right in ((a, b), (a.mT.contiguous().mT, b), with_gradients, (integers(2, 5, 7), integers(7, 3))):
        torch.library.opcheck(torch.ops.tilewright.matmul.default, (left, right))
    torch.library.opcheck(torch.ops.tilewright.matmul_out.default, (a, b, a.new_zeros(33, 65)))
    c, bias = integers(33, 65, requires_grad=True), integers(65, requires_grad=True)
    torch.library.opcheck(torch.ops.tilewright.gemm.default, (*with_gradients, c, bias, 2.0, 0.5, "relu_bias"))
    out = a.new_zeros(33, 65)
    torch.library.opcheck(torch.ops.tilewright.gemm_out.default, (a, b, out, c.detach(), bias.detach(), 2.0, 0.5))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize(("a", "b"), SHAPES)
def test_j7_gradients_are_those_of_torchs_product(a, b, dtype):
    a, b = integers(*a, dtype=dtype, most=2, requires_grad=True), integers(*b, dtype=dtype, most=2, requires_grad=True)
    got = tw.matmul(a, b)
    weights = integers(*got.shape, dtype=dtype, most=1)
    ours = torch.autograd.grad(got, (a, b), weights)
    wide = [x.detach().double().requires_grad_() for x in (a, b)]
    theirs = torch.autograd.grad(torch.matmul(*wide), wide, weights.double())
    for mine, other in zip(ours, theirs, strict=True):
        assert mine.dtype == dtype and torch.equal(mine.double(), other)


def test_j7_gradients_of_everything_that_gemm_takes():
    def both(gemm, *tensors):
        got = gemm(*tensors)
        return got, torch.autograd.grad(got, tensors, torch.ones_like(got))

    def theirs(a, b, c, bias):
        return (2 * (a @ b) + 0.5 * c + bias).relu()

    def ours(a, b, c, bias):
        return tw.gemm(a, b, c, alpha=2.0, beta=0.5, bias=bias, epilogue="relu_bias")

    for shape_of_c in ((33, 65), (65,), (33, 1), (1, 1)):
        tensors = [integers(*shape) for shape in ((33, 7), (7, 65), shape_of_c, (65,))]
        got, gradients = both(ours, *(x.clone().requires_grad_() for x in tensors))
        wanted, others = both(theirs, *(x.double().requires_grad_() for x in tensors))
        assert torch.equal(got.double(), wanted)
        for mine, other in zip(gradients, others, strict=True):
            assert torch.equal(mine.double(), other)


def test_gradients_have_gradients():
    a, b = integers(5, 4, requires_grad=True), integers(4, 3, requires_grad=True)
    (first,) = torch.autograd.grad(tw.matmul(a, b).square().sum(), a, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), b)
    wide = [x.detach().double().requires_grad_() for x in (a, b)]
    (wide_first,) = torch.autograd.grad((wide[0] @ wide[1]).square().sum(), wide[0], create_graph=True)
    assert torch.equal(second.double(), torch.autograd.grad(wide_first.sum(), wide[1])[0])


def test_j7_out_with_gradients_is_refused_and_without_them_is_not():
    a, b, out = integers(5, 4, requires_grad=True), integers(4, 3), torch.zeros(5, 3, device="cuda")
    with pytest.raises(InvalidProblem, match="out= with operands that require gradients"):
        tw.matmul(a, b, out=out)
    with torch.no_grad():
        assert torch.equal(tw.matmul(a, b, out=out), a @ b)
    with pytest.raises(InvalidProblem, match="use matmul or gemm, or detach"):
        tw.Gemm(a, b)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast_is_followed_as_torch_mm_does(dtype):
    a, b = integers(32, 16, requires_grad=True), integers(16, 32)
    with torch.autocast("cuda", dtype=dtype):
        ours, theirs = tw.matmul(a, b), torch.mm(a, b)
        with_bias = tw.gemm(a, b, bias=integers(32))
    assert ours.dtype == theirs.dtype == with_bias.dtype == dtype and torch.equal(ours, theirs)
    ours.sum().backward()
    assert a.grad.dtype == torch.float32
    assert tw.matmul(a, b).dtype == torch.float32


@pytest.mark.filterwarnings("ignore:.torch.jit.script_method. is deprecated:DeprecationWarning")  # torch.compile's own
@pytest.mark.parametrize("dynamic", [False, True])
def test_a_compiled_function_has_the_product_and_its_gradients(dynamic):
    def layer(x, w, bias):
        return (tw.gemm(x, w.t(), bias=bias, epilogue="relu_bias") + tw.matmul(x, w.t())).sum()

    compiled = torch.compile(layer, fullgraph=True, dynamic=dynamic)
    for rows in (8, 24):
        tensors = [integers(*shape, requires_grad=True) for shape in ((rows, 16), (32, 16), (32,))]
        got = torch.autograd.grad(compiled(*tensors), tensors)
        wide = [x.detach().double().requires_grad_() for x in tensors]
        x, w, bias = wide
        wanted = torch.autograd.grad(((x @ w.t() + bias).relu() + x @ w.t()).sum(), wide)
        assert all(torch.equal(mine.double(), other) for mine, other in zip(got, wanted, strict=True))


@pytest.mark.filterwarnings("ignore:.torch.jit.script_method. is deprecated:DeprecationWarning")  # torch.compile's own
def test_a_compiled_function_may_write_to_out():
    def product(a, b, out):
        tw.matmul(a, b, out=out)
        return out * 2

    a, b, out = integers(8, 16), integers(16, 4), torch.zeros(8, 4, device="cuda")
    got = torch.compile(product, fullgraph=True)(a, b, out)
    assert torch.equal(out, a @ b) and torch.equal(got, 2 * (a @ b))


def test_what_is_no_plain_tensor_is_never_silently_wrong():
    pairs = torch.randint(-4, 5, (6, 6, 2), device="cuda").float()
    negated = torch.view_as_complex(pairs).conj().imag
    assert negated.is_neg()
    b = integers(6, 6)
    assert torch.equal(tw.matmul(negated, b), -pairs[..., 1] @ b)
    assert torch.equal(tw.matmul(negated[:, :1], b[:1]), -pairs[:, :1, 1] @ b[:1])
    with pytest.raises((InvalidProblem, RuntimeError, NotImplementedError)):
        tw.matmul(b.to_sparse(), b)
    with pytest.raises(InvalidProblem, match="are on the host"):
        tw.matmul(b.cpu(), b.cpu())
    a, batch = integers(6, 6), integers(2, 6, 6)
    assert torch.equal(torch.func.vmap(lambda x: tw.matmul(x, b))(batch), batch @ b)
    # torch's own refusal: its custom operators know no torch.func.grad
    with pytest.raises(RuntimeError, match="functorch"):
        torch.func.grad(lambda x: tw.matmul(x, b).sum())(a)


@pytest.mark.parametrize("bias", [True, False])
def test_the_drop_in_layer_shares_the_parameters_and_computes_the_same(bias, ours):
    theirs = torch.nn.Linear(16, 32, bias=bias, device="cuda")
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.copy_(integers(*parameter.shape))
    layer = ours.Linear.from_linear(theirs)
    assert layer.state_dict().keys() == theirs.state_dict().keys()
    assert layer.weight is theirs.weight and layer.bias is theirs.bias
    for shape in ((8, 16), (16,), (2, 3, 16), (0, 16)):
        x = integers(*shape)
        assert torch.equal(layer(x), theirs(x))
    layer(integers(4, 16)).sum().backward()
    assert theirs.weight.grad is not None
    own = ours.Linear.from_linear(theirs, kernels="own")
    assert own.kernels == "own" and torch.equal(own(integers(4, 16) * 0 + 1), theirs(torch.ones(4, 16, device="cuda")))
    made = ours.Linear(16, 32, bias=bias, device="cuda")
    made.load_state_dict(theirs.state_dict())
    assert torch.equal(made(integers(8, 16) * 0 + 1), theirs(torch.ones(8, 16, device="cuda")))


@pytest.mark.parametrize("name", ["gelu", "silu"])
@pytest.mark.parametrize("differentiated", [False, True])
def test_activations_and_their_gradients_are_torchs(name, differentiated):
    functional = torch.nn.functional
    activation = functional.silu if name == "silu" else lambda x: functional.gelu(x, approximate="tanh")
    shapes = ((33, 40), (24, 40), (24,))
    inputs = [torch.randn(*shape, device="cuda", requires_grad=differentiated) for shape in shapes]
    x, w, bias = inputs
    got, wanted = tw.gemm(x, w.t(), bias=bias, epilogue=name), activation(functional.linear(x, w, bias))
    torch.testing.assert_close(got, wanted, rtol=1e-5, atol=1e-5)
    if differentiated:
        for ours, theirs in zip(*(torch.autograd.grad(y.sum(), inputs) for y in (got, wanted)), strict=True):
            torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)
        with pytest.raises(InvalidProblem, match=r"use tilewright\.gemm"):
            torch.ops.tilewright.gemm(x, w.t(), None, bias, 1.0, None, f"{name}_bias")


def test_a_step_of_training_is_captured_and_replayed(ours):
    layer = ours.Linear(16, 16, device="cuda")
    x, graph = integers(8, 16), torch.cuda.CUDAGraph()
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            layer.zero_grad(set_to_none=True)
            layer(x).sum().backward()
    torch.cuda.current_stream().wait_stream(side)
    layer.zero_grad(set_to_none=True)
    with torch.cuda.graph(graph):
        layer(x).sum().backward()
    graph.replay()
    torch.cuda.synchronize()
    assert torch.equal(layer.weight.grad, torch.ones(8, 16, device="cuda").t() @ x)
