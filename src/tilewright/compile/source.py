"""From rung, config and problem to the complete text a compiler sees.

The kernel's own text is used unchanged. Before it stand its constants, the scalar type, the argument struct, the
epilogue and the config rules as static_assert, so that a kernel compiled with constants that were never checked in
Python still fails loudly.
"""

from __future__ import annotations

from tilewright.compile.binary import KernelSource
from tilewright.compile.variant import PLAIN, Variant
from tilewright.declare.config import Config
from tilewright.problem import Problem

SCALARS = {"float32": "F32", "tfloat32": "TF32", "float16": "F16", "bfloat16": "BF16"}
FIELD_SCALAR = "Field61"
"""The scalar of exact runs in the emulator, in place of the problem's own; its operands are `run.args.Field61Args`'."""


def _constants(constants: dict[str, int]) -> str:
    return "".join(f"[[maybe_unused]] constexpr int {name} = {value};\n" for name, value in constants.items())


def _asserts(config: Config) -> str:
    rules = config.rung.rules_of("config")
    return "".join(f'static_assert({r.expr.cpp}, "{r.expr.text}: {r.reason}");\n' for r in rules)


def kernel_source(config: Config, problem: Problem, variant: Variant = PLAIN, *, scalar: str = "") -> KernelSource:
    """The text of `config`'s kernel specialised for `problem`: its β, its tails, its epilogue, its dtype.

    `variant` sets parts of the build apart. `scalar` names another trait of `scalar.cuh` than those that belong to the
    problem's dtypes. Raises InvalidConfig and InvalidProblem as `Variant` does.
    """
    rung = config.rung
    constants = {**config.constants, **variant.problem_constants(config, problem), **dict(variant.constants)}
    file = f"{rung.entry}.cu"
    text = (
        f"// {rung.name}: {config}\n"
        '#include "tilewright/scalar.cuh"\n'
        f"using Scalar = tilewright::{scalar or SCALARS[problem.dtype]};\n"
        f"using Output = tilewright::{scalar or SCALARS[problem.out_dtype]};\n"
        '#include "tilewright/args.cuh"\n'
        "using namespace tilewright;\n"
        f"{_constants(constants)}{problem.epilogue.render()}{_asserts(config)}"
        f'#line 1 "{file}"\n{variant.own_text(config)}'
    )
    args_type = "tilewright::TmaArgs" if rung.tensor_maps else "tilewright::GemmArgs"
    return KernelSource(rung.name, rung.entry, text, file, variant.options, args_type)
