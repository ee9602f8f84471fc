#!/usr/bin/env python3
"""GPT-2 small, one forward pass in float32: torch's linear layers, and tilewright's in their place.

The model is plain torch with random weights. Its copy has the very same parameters and another class for each `Linear`.
Both are compared with a float64 copy before either is timed; attention and all else are torch's in both.
"""

from __future__ import annotations

import argparse
import copy
import math
import sys
from collections import Counter
from typing import Any

from paired import OURS, need, one_line, parser_of, show, status_of, timed, write_record

import tilewright as tw
from tilewright.errors import Missing, WrongResult
from tilewright.run.cuda import CudaBackend

LAYERS, HEADS, WIDTH, VOCABULARY, CONTEXT = 12, 12, 768, 50257, 1024
SPREAD, RESIDUAL_SPREAD = 0.02, 0.02 / math.sqrt(2 * LAYERS)
TIMES_TORCHS_ERROR = 8.0
"""How many times torch's own largest error ours may be, both against float64.

Both sum in float32 and differ in the order. A sum cut into s parts errs about √s times less than one chain, as its
partial sums are smaller; libraries cut such k into up to 16 parts, which makes 4, and these are the largest of many
errors, which makes it 8. In NumPy, one chain against 16 parts came to 4.5 in this model (48 tokens, all else equal),
and operands rounded to TF32's 11 bits to about 1000: any order of summation is accepted and no other arithmetic.
"""


def build(seed: int) -> Any:
    """The model on the GPU, its weights normal as GPT-2's are at first. So are its biases, which GPT-2 starts at 0."""
    import torch

    nn = torch.nn
    torch.manual_seed(seed)
    with torch.device("cuda"):
        blocks = [
            nn.ModuleDict(
                {
                    "norm_1": nn.LayerNorm(WIDTH),
                    "qkv": nn.Linear(WIDTH, 3 * WIDTH),
                    "attended": nn.Linear(WIDTH, WIDTH),
                    "norm_2": nn.LayerNorm(WIDTH),
                    "widen": nn.Linear(WIDTH, 4 * WIDTH),
                    "narrow": nn.Linear(4 * WIDTH, WIDTH),
                }
            )
            for _ in range(LAYERS)
        ]
        model = nn.ModuleDict(
            {
                "token": nn.Embedding(VOCABULARY, WIDTH),
                "position": nn.Embedding(CONTEXT, WIDTH),
                "blocks": nn.ModuleList(blocks),
                "norm": nn.LayerNorm(WIDTH),
                "head": nn.Linear(WIDTH, VOCABULARY, bias=False),
            }
        )
    model.head.weight = model.token.weight
    for name, parameter in model.named_parameters():
        if "norm" not in name:
            is_residual = name.endswith(("attended.weight", "narrow.weight"))
            nn.init.normal_(parameter, std=RESIDUAL_SPREAD if is_residual else SPREAD)
    return model.eval()


def forward(model: Any, tokens: Any) -> Any:
    """Logits (batch, tokens, vocabulary) of tokens (batch, tokens)."""
    from torch.nn import functional

    batch, length = tokens.shape
    x = model.token(tokens) + model.position.weight[:length]
    for block in model.blocks:
        qkv = block.qkv(block.norm_1(x)).view(batch, length, 3, HEADS, WIDTH // HEADS)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        seen = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + block.attended(seen.transpose(1, 2).reshape(batch, length, WIDTH))
        x = x + block.narrow(functional.gelu(block.widen(block.norm_2(x)), approximate="tanh"))
    return model.head(model.norm(x))


def with_our_linears(model: Any) -> Any:
    """A copy that shares every parameter, each `torch.nn.Linear` replaced by `tilewright.torch.Linear`."""
    import torch

    from tilewright.torch import Linear

    ours = copy.deepcopy(model, {id(parameter): parameter for parameter in model.parameters()})
    for parent in list(ours.modules()):
        for name, child in list(parent.named_children()):
            if type(child) is torch.nn.Linear:
                setattr(parent, name, Linear.from_linear(child))
    return ours


def check(model: Any, ours: Any, wide: Any, tokens: Any) -> dict[str, float]:
    """Both models' largest errors against the float64 one, and the bound on ours. Raises WrongResult beyond it."""
    exact = forward(wide, tokens)
    largest = float(exact.abs().max())
    errors = {name: float((forward(each, tokens) - exact).abs().max()) for name, each in both(model, ours).items()}
    bound = TIMES_TORCHS_ERROR * errors["torch"] + 2.0**-24 * largest  # and one rounding of the largest logit
    print(f"largest error of {exact.numel()} logits up to {largest:.3g} in magnitude, against float64:")
    print(f"  torch {errors['torch']:.3g}, {OURS} {errors[OURS]:.3g}, accepted {bound:.3g}")
    if not errors[OURS] <= bound:
        raise WrongResult(f"logits: {OURS} is off by {errors[OURS]:.3g}, accepted are {bound:.3g}")
    return {"torch_error": errors["torch"], "error": errors[OURS], "bound": bound, "largest_logit": largest}


def both(model: Any, ours: Any) -> dict[str, Any]:
    """By name, the baseline first."""
    return {"torch": model, OURS: ours}


def kernels_of(ours: Any, tokens: Any) -> dict[str, str]:
    """What computes the linear layers, for each number of them and shape m×n×k."""
    from tilewright.torch import Linear

    layers = [layer for layer in ours.modules() if isinstance(layer, Linear)]
    counts = Counter((layer.out_features, layer.in_features) for layer in layers)
    found = {}
    for layer in {(each.out_features, each.in_features): each for each in layers}.values():
        n, k = layer.out_features, layer.in_features
        x = layer.weight.new_empty(*tokens.shape, k)
        with tw.Gemm(x, layer.weight.t(), bias=layer.bias) as product:
            found[f"{counts[n, k]} × {tokens.numel()}×{n}×{k}"] = one_line(product.plan())
    return found


def graph_of(model: Any, tokens: Any, bound: float) -> Any:
    """The forward pass as a CUDA graph; its kernels were loaded by the passes before. Raises as `check` does."""
    import torch

    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        logits = forward(model, tokens)
    graph.replay()
    off = float((logits - forward(model, tokens)).abs().max())
    if not off <= bound:
        raise WrongResult(f"logits: those of a replayed graph are {off:.3g} from those of the calls in it")
    return graph


def compare(asked: argparse.Namespace) -> None:
    """Build, check, time, print. Raises Missing, WrongResult."""
    torch = need("torch", "torch")
    if not torch.cuda.is_available():
        raise Missing("torch sees no GPU: install a build of it for CUDA")
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream), CudaBackend(stream=stream.cuda_stream) as gpu:
        model = build(asked.seed)
        ours, wide = with_our_linears(model), copy.deepcopy(model).double()
        tokens = torch.randint(VOCABULARY, (asked.batch, asked.tokens), device="cuda")
        print(f"GPT-2 small, float32, TF32 off, {asked.batch}×{asked.tokens} tokens, torch {torch.__version__}")
        with torch.inference_mode():  # capture and replay as well: torch keeps their mode
            errors = check(model, ours, wide, tokens)
            kernels = kernels_of(ours, tokens)
            print("kernels:", *(f"{shape}: {kernel}" for shape, kernel in kernels.items()), sep="\n  ")
            measured = {}
            if asked.mode != "graph":
                calls = {name: lambda each=each: forward(each, tokens) for name, each in both(model, ours).items()}
                measured["eager"] = timed(gpu, calls, asked, from_idle=True)
            if asked.mode != "eager":
                graphs = {n: graph_of(each, tokens, errors["bound"]) for n, each in both(model, ours).items()}
                replays = {name: graph.replay for name, graph in graphs.items()}
                measured["CUDA graph"] = timed(gpu, replays, asked, from_idle=False)
            show(measured)
        problem = {"model": "GPT-2 small", "batch": asked.batch, "tokens": asked.tokens, "dtype": "float32"}
        about = {"example": "gpt2_forward", "seed": asked.seed, "logits": errors, "kernels": kernels}
        data = "random tokens; weights and biases normal"
        write_record(asked, gpu, measured, problem=problem, data=data, about=about)


def main(arguments: list[str] | None = None) -> int:
    """The exit status."""
    parser = parser_of("GPT-2 small in float32 on a GPU: torch's linear layers against tilewright's.")
    parser.add_argument("--batch", type=int, default=1, help="sequences (default: %(default)s)")
    parser.add_argument("--tokens", type=int, default=CONTEXT, help=f"of each, up to {CONTEXT} (default: %(default)s)")
    parser.add_argument("--mode", choices=("eager", "graph", "both"), default="both", help="default: %(default)s")
    asked = parser.parse_args(arguments)
    if asked.batch < 1 or not 1 <= asked.tokens <= CONTEXT:
        parser.error(f"needs --batch of 1 or more and --tokens of 1 to {CONTEXT}")
    return status_of(lambda: compare(asked))


if __name__ == "__main__":
    sys.exit(main())
