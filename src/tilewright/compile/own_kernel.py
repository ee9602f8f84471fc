"""A person's own .cu as the emulator takes it: the kernel's text, and a declaration of its arguments.

The text stays line for line what it was; only what a host compiler cannot spell is respelt. Owns what is accepted,
what is refused and why. The kernel may be a template: `entry` is the expression that names an instance.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.compile.binary import KernelSource
from tilewright.errors import InvalidInput

ARGS_TYPE = "TilewrightArgs"
REFUSED = (
    (r"<<<", "`<<<…>>>` launches from the host; keep the kernel and its device functions only"),
    (r"\basm\b", "inline assembly is a GPU's; call one of tilewright's headers in its place"),
    (r"\bmain\s*\(", "`main` is host code; keep the kernel and its device functions only"),
    (r"\b(__constant__|texture<|surf\w+<)", "constant memory, textures and surfaces are not emulated; pass a pointer"),
    (r"\bnvcuda::|\bcooperative_groups\b", "this library is not emulated; spell what it does by hand"),
)
HEADERS = {
    **dict.fromkeys(("cuda_runtime.h", "cuda.h", "device_launch_parameters.h", "vector_types.h"), "device.hpp"),
    "cuda_fp16.h": "half.hpp",
}
REFUSED_HEADERS = re.compile(r"^(mma\.h|cuda_bf16\.h|cuda_fp8\.h|cooperative_groups|cub/|cuda/|cute/|cutlass/|thrust/)")
INCLUDE = re.compile(r"^([ \t]*#[ \t]*include[ \t]*)[<\"]([^>\"]+)[>\"]", re.MULTILINE)
DYNAMIC_SMEM = re.compile(
    r"\bextern\s+__shared__\s+(?:(?:__align__|alignas)\s*\(\s*\w+\s*\)\s*)?([\w:]+(?:\s+\w+)*)\s+(\w+)\s*\[\s*\]\s*;"
)


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a kernel: its name and its C++ type, a pointer's with the star."""

    name: str
    cpp_type: str


def own_kernel_source(text: str, *, file: str, entry: str, parameters: Sequence[Parameter]) -> KernelSource:
    """`text` with the call that the runner makes, for `compile_host` or `compile_traced`.

    `file` names it in reports; `entry` is 'kernel' or an instance, 'kernel<64, 8>'. Raises InvalidInput, with the line
    and the reason, for what the emulator cannot take.
    """
    _refuse(text, file)
    body = INCLUDE.sub(lambda match: _include(match, file), text)
    body = DYNAMIC_SMEM.sub(lambda match: _dynamic(match, file), body)
    members = " ".join(f"{parameter.cpp_type} {parameter.name};" for parameter in parameters)
    passed = ", ".join(f"args.{parameter.name}" for parameter in parameters)
    export = 'extern "C" __attribute__((visibility("default")))'
    whole = (
        f'#include "device.hpp"\n#include "half.hpp"\n#line 1 "{file}"\n{body}\n#line 1 "the declaration of {entry}"\n'
        f"struct {ARGS_TYPE} {{ {members} }};\n"
        f"{export} const unsigned tilewright_args_bytes = sizeof({ARGS_TYPE});\n"
        f"{export} void tilewright_entry(const void* bytes) {{\n"
        f"  [[maybe_unused]] const auto& args = *static_cast<const {ARGS_TYPE}*>(bytes);\n  {entry}({passed});\n}}\n"
    )
    return KernelSource(name=file, entry=entry, text=whole, file=file)


def _refuse(text: str, file: str) -> None:
    code = _without_comments(text)
    for pattern, why in REFUSED:
        if match := re.search(pattern, code):
            raise InvalidInput(f"{file}:{_line(code, match)}: {why}")


def _without_comments(text: str) -> str:
    """`text` with comments and strings blanked, line for line."""
    return re.sub(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"", _blank, text, flags=re.DOTALL)


def _blank(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match[0])


def _line(text: str, match: re.Match[str]) -> int:
    return text.count("\n", 0, match.start()) + 1


def _include(match: re.Match[str], file: str) -> str:
    name = match[2]
    if REFUSED_HEADERS.match(name):
        raise InvalidInput(f"{file}:{_line(match.string, match)}: <{name}> is not emulated; do without it")
    return f'{match[1]}"{HEADERS[name]}"' if name in HEADERS else match[0]


def _dynamic(match: re.Match[str], file: str) -> str:
    """A pointer inside a function; a macro outside, where there is no launch yet to point into."""
    pointer = f"reinterpret_cast<{match[1]}*>(tilewright_dynamic_smem())"
    before = _without_comments(match.string[: match.start()])
    if before.count("{") > before.count("}"):
        return f"{match[1]}* const {match[2]} = {pointer};" + "\n" * match[0].count("\n")
    line = _line(match.string, match) + match[0].count("\n")
    return f'\n#define {match[2]} ({pointer})\n#line {line} "{file}"\n'
