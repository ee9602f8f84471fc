"""`tilewright warm`: compile what a suite's shapes would choose, so that no first call has to. Needs no GPU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.text import Text

from tilewright.arch import get_arch
from tilewright.compile.batch import in_parallel
from tilewright.compile.binary import KernelSource
from tilewright.compile.nvrtc import compile_cubin
from tilewright.compile.source import kernel_source
from tilewright.errors import InvalidProblem, TilewrightError
from tilewright.facts.roofline import get_card
from tilewright.lab.output import standard_output
from tilewright.select import choose
from tilewright.suite import read_suite, selected


@dataclass(frozen=True)
class WarmRequest:
    """The command's arguments."""

    suite: str
    dtype: str | None
    groups: Sequence[str]
    limit: int | None
    card: str


def run_warm(request: WarmRequest) -> int:
    """Compile and say how much that was. Returns the exit status: 0, 1 where a kernel didn't compile."""
    shapes = selected(read_suite(request.suite), groups=request.groups, dtype=request.dtype, limit=request.limit)
    card = get_card(request.card)
    arch, console = get_arch(card.arch), standard_output()
    sources: dict[KernelSource, str] = {}
    refused = 0
    for shape in shapes:
        try:
            config = choose(shape.problem, arch, card.sms, card=card.name).config
            sources.setdefault(kernel_source(config, shape.problem), str(shape.problem))
        except InvalidProblem as error:
            refused += 1
            console.print(Text(str(error), style="yellow"), soft_wrap=True)

    def compiled(source: KernelSource) -> TilewrightError | None:
        try:
            compile_cubin(source, arch)
        except TilewrightError as error:
            return error
        return None

    failures = [failure for failure in in_parallel(compiled, sources) if failure is not None]
    for failure in failures:
        console.print(Text(str(failure), style="red"), soft_wrap=True)
    told = f"compiled for {arch.name}: kernels {len(sources) - len(failures)}, for shapes {len(shapes) - refused}"
    console.print(Text(told + (f"; refused shapes {refused}" if refused else "")), soft_wrap=True)
    return 1 if failures else 0
