"""What of a call is no array: scales, epilogue, compute type, which kernels. Names in, checked values out."""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from tilewright.declare import Config, Rung, all_rungs, rung_config
from tilewright.epilogue import Epilogue
from tilewright.errors import InvalidInput, InvalidProblem
from tilewright.problem import FLOAT32_MAX

BACKENDS, KERNELS = (None, "cuda", "emulator"), ("all", "own")

COMPUTE_TYPES = {
    "ieee": ("fp32", "32f", "32f_pedantic"),
    "tf32": ("32f_fast_tf32",),
}
"""Each compute type with its other names, cuBLAS's without CUBLAS_COMPUTE_."""
KNOWN_ELSEWHERE = {
    "tf32x3": "three TF32 products that make up a float32 one",
    "32f_fast_16f": "float32 operands rounded to float16",
    "32f_fast_16bf": "float32 operands rounded to bfloat16",
    "32f_emulated_16bfx9": "nine bfloat16 products that make up a float32 one",
    "16f": "sums in float16",
    "16f_pedantic": "sums in float16",
    "64f": "sums in float64",
    "64f_pedantic": "sums in float64",
}
EPILOGUES: dict[str, tuple[str, ...]] = {
    "default": (),
    "bias": ("bias",),
    "relu": ("relu",),
    "relu_bias": ("bias", "relu"),
    "gelu": ("gelu",),
    "gelu_bias": ("bias", "gelu"),
    "silu": ("silu",),
    "silu_bias": ("bias", "silu"),
}
"""cuBLASLt's names, and SILU made like them. RELU_BIAS and its like add the bias first; GELU is that by tanh."""


class Options(NamedTuple):
    """What of a call is no array, as given. `settings` are pairs, so that options can be compared and hashed."""

    alpha: Any = 1.0
    beta: Any = None
    epilogue: Any = None
    compute_type: Any = None
    kernels: Any = "all"
    backend: Any = None
    rung: Any = None
    settings: Any = None


USUAL = {kernels: Options(kernels=kernels) for kernels in KERNELS}
"""Those of a call that names nothing but `kernels`."""


@dataclass(frozen=True, slots=True)
class Checked:
    """Options that were checked. `config` is that of the rung that the call names, None where none is named."""

    alpha: float
    beta: float
    dtype: str
    epilogue: Epilogue
    own: bool
    config: Config | None


def given_settings(settings: Mapping[str, int] | None) -> Any:
    """Settings as `Options` holds them. Raises InvalidInput for what is no mapping."""
    if settings is None:
        return None
    if not isinstance(settings, Mapping):
        raise InvalidInput(f"settings={settings!r}: must map a rung's parameters to values, as in {{'BM': 128}}")
    return tuple(sorted(settings.items()))


def check_options(options: Options, dtype: str, *, has_c: bool, has_bias: bool) -> Checked:
    """The options checked, for operands of `dtype`. Raises InvalidInput, UnknownName for a rung that isn't there."""
    if options.kernels not in KERNELS:
        raise InvalidInput(f"kernels={options.kernels!r}: must be 'all' or 'own'")
    if options.backend not in BACKENDS:
        raise InvalidInput(f"backend={options.backend!r}: must be 'cuda' or 'emulator'; leave it out for the GPU")
    return Checked(
        alpha=scale("alpha", options.alpha),
        beta=beta_of(options.beta, has_c=has_c),
        dtype=operand_dtype(dtype, options.compute_type),
        epilogue=epilogue_of(options.epilogue, has_bias=has_bias),
        own=options.kernels == "own",
        config=_named_config(options.rung, options.settings),
    )


def _named_config(rung: Any, settings: Any) -> Config | None:
    if rung is None:
        if settings is not None:
            raise InvalidInput(f"settings={dict(settings)}: are a rung's; name it too, as in rung='k12'")
        return None
    if not isinstance(rung, str | Rung):
        raise InvalidInput(f"rung={rung!r}: must be a rung's name, as in 'k12', or a Rung")
    found = all_rungs().find(rung) if isinstance(rung, str) else rung
    return rung_config(found, dict(settings) if settings is not None else None)


def operand_dtype(dtype: str, compute_type: str | None) -> str:
    """A problem's element type for operands of `dtype` under a compute type; None is 'ieee'.

    'ieee' is float32 arithmetic on the elements as they are: no TF32, and sums in float32 for 16-bit elements too.
    Raises InvalidProblem for a compute type that no rung has.
    """
    named = "ieee" if compute_type is None else str(compute_type)
    short = named.lower().removeprefix("cublas_").removeprefix("compute_")
    found = next((name for name, others in COMPUTE_TYPES.items() if short in (name, *others)), None)
    if found is None:
        known = f": {KNOWN_ELSEWHERE[short]}, for which there is no rung" if short in KNOWN_ELSEWHERE else ": not known"
        raise InvalidProblem(f"compute_type={named!r}{known}; use 'ieee' (float32 arithmetic) or 'tf32'")
    if found == "ieee":
        return dtype
    if dtype != "float32":
        raise InvalidProblem(f"compute_type={named!r} with {dtype}: TF32 is for float32 operands; leave it out")
    return "tfloat32"


def epilogue_of(named: Any, *, has_bias: bool) -> Epilogue:
    """The epilogue of a name of cuBLASLt, an Epilogue or None; a bias alone means 'bias'.

    Raises InvalidProblem for another name, a bias that the epilogue doesn't take, or one that it lacks.
    """
    if named is None:
        epilogue = Epilogue(("bias",) if has_bias else ())
    elif isinstance(named, Epilogue):
        epilogue = named
    else:
        short = str(named).lower().removeprefix("cublaslt_").removeprefix("epilogue_")
        if short not in EPILOGUES:
            raise InvalidProblem(f"epilogue={named!r}: no such epilogue; use one of {', '.join(EPILOGUES)}")
        epilogue = Epilogue(EPILOGUES[short])
        if has_bias and f"{short}_bias" in EPILOGUES:
            epilogue = Epilogue(EPILOGUES[f"{short}_bias"])
    if epilogue.needs_bias and not has_bias:
        raise InvalidProblem(f"epilogue={named!r}: adds a bias; pass bias=, one element for each column")
    if has_bias and not epilogue.needs_bias:
        raise InvalidProblem(
            f"epilogue={named!r} with bias=: this epilogue adds none; use 'bias', 'relu_bias' or the like"
        )
    return epilogue


def scale(name: str, value: Any) -> float:
    """α or β as a float. Raises InvalidProblem for what is no real number or overflows float32."""
    if not isinstance(value, numbers.Real):
        raise InvalidProblem(f"{name}={value!r}: must be a real number; a tensor's value is its .item()")
    converted = float(value)
    if FLOAT32_MAX < abs(converted) < float("inf"):
        raise InvalidProblem(f"{name}={value}: overflows float32, in which it is applied; scale the operands")
    return converted


def beta_of(beta: Any, *, has_c: bool) -> float:
    """β as given, 0 where neither it nor C is. Raises InvalidProblem unless both or neither take part."""
    if beta is None:
        if has_c:
            raise InvalidProblem("c without beta: pass beta=1.0 to add it, beta=0.0 to leave it out")
        return 0.0
    value = scale("beta", beta)
    if value != 0.0 and not has_c:
        raise InvalidProblem(f"beta={beta} without c: pass c, or leave beta out")
    return value
