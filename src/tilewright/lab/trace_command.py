"""`tilewright trace FILE.cu`: a person's own kernel under the emulator's microscope."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.text import Text

from tilewright.emulator.findings import NOTHING_FOUND
from tilewright.emulator.trace import Trace
from tilewright.emulator.tracing import Watch
from tilewright.errors import InvalidInput, LaunchFailed
from tilewright.lab.memory_table import Picture, TableRow, print_memory, show_picture
from tilewright.lab.output import print_json, standard_error, standard_output
from tilewright.lab.own_kernel import Argument, OwnKernel, trace_kernel
from tilewright.record import SCHEMA, environment


@dataclass(frozen=True)
class TraceRequest:
    """The command's arguments; `grid` and `block` are one to three sizes with commas between."""

    file: str
    entry: str
    grid: str
    block: str
    arguments: list[str]
    dynamic_smem_bytes: int
    schedule: str
    seed: int
    picture: Picture

    def kernel(self) -> OwnKernel:
        """The declaration. Raises InvalidInput."""
        path = Path(self.file)
        try:
            text = path.read_text(encoding="utf-8")
        except OSError as error:
            raise InvalidInput(f"{self.file}: cannot be read ({error.strerror})") from None
        return OwnKernel(
            text=text,
            file=path.name,
            entry=self.entry,
            grid=parse_sizes("--grid", self.grid),
            block=parse_sizes("--block", self.block),
            arguments=[Argument.parse(argument) for argument in self.arguments],
            dynamic_smem_bytes=self.dynamic_smem_bytes,
        )


def parse_sizes(option: str, text: str) -> tuple[int, int, int]:
    """`X`, `X,Y` or `X,Y,Z`. Raises InvalidInput."""
    parts = [part.strip() for part in text.split(",")]
    if not 1 <= len(parts) <= 3 or not all(part.isdigit() and int(part) > 0 for part in parts):
        raise InvalidInput(f"{option} {text}: must be one to three sizes of at least 1, as in 2,2")
    x, y, z = (int(part) for part in [*parts, "1", "1"][:3])
    return x, y, z


def trace_own(request: TraceRequest, *, as_json: bool) -> int:
    """Trace one launch, counts and checks, and print both. Returns the exit status."""
    kernel = request.kernel()
    watch = Watch(checks=True, events=request.picture.wanted)
    trace, failure = trace_kernel(kernel, watch, schedule=request.schedule, seed=request.seed)
    if as_json:
        print_json(_json(kernel, trace, failure))
    console = standard_error() if as_json else standard_output()
    if not as_json:
        console.print(Text(f"{kernel.file}  {kernel.entry}, in the emulator", style="bold"), soft_wrap=True)
        print_memory(console, [TableRow(line) for line in trace.lines], kernel.file, kernel.text)
        _print_findings(console, trace, failure)
    show_picture(console, request.picture, trace)
    return int(bool(trace.findings) or failure is not None)


def _print_findings(console: Console, trace: Trace, failure: LaunchFailed | None) -> None:
    console.print()
    for finding in trace.findings:
        console.print(Text(f"✗ {finding}", style="red"), soft_wrap=True)
    if failure is not None:
        console.print(Text(f"✗ {failure.kind}: {failure}", style="red"), soft_wrap=True)
    elif not trace.findings:
        console.print(Text(f"✓ {NOTHING_FOUND}", style="green"))


def _json(kernel: OwnKernel, trace: Trace, failure: LaunchFailed | None) -> dict[str, object]:
    row = {
        "kernel": kernel.entry,
        "file": kernel.file,
        "memory": [line.to_json() for line in trace.lines],
        "findings": [finding.text for finding in trace.findings],
        "failure": failure.kind if failure is not None else None,
        "verdict": str(failure) if failure is not None else None,
    }
    claimed = {name: value for name, value in row.items() if value is not None}
    return {"schema": SCHEMA, "command": "trace", "environment": environment(), "rows": [claimed]}
