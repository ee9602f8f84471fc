"""The main loop's instructions as a person reads them: by kind, and by line of the kernel."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction

from rich.console import Console
from rich.text import Text

from tilewright.declare import Config
from tilewright.facts.mainloop import FMAS, MainLoop, kind_of
from tilewright.lab.render import percent
from tilewright.lab.sections import heading

KIND_ORDER = (
    "FFMA",
    "FFMA2",
    "HMMA",
    "HGMMA",
    "LDS",
    "LDSM",
    "STS",
    "STSM",
    "LDG",
    "LDGSTS",
    "UTMALDG",
    "STG",
    "UTMASTG",
    "SYNCS",
    "BAR",
    "LDL",
    "STL",
    "branch",
    "other",
)
KIND_WORDS = {
    "HMMA": "a warp's products by tensor cores",
    "HGMMA": "a warpgroup's products by tensor cores, operands from shared memory",
    "LDS": "shared loads",
    "LDSM": "shared matrix loads",
    "STS": "shared stores",
    "STSM": "shared matrix stores",
    "UTMALDG": "copies of boxes from global to shared by TMA",
    "UTMASTG": "copies of boxes from shared to global by TMA",
    "SYNCS": "arrivals at mbarriers and waits for them",
    "LDG": "global loads",
    "LDGSTS": "copies from global to shared",
    "STG": "global stores",
    "BAR": "barriers",
    "LDL": "loads of spilled registers",
    "STL": "spills of registers",
    "branch": "branches",
    "other": "addresses, counters, moves, comparisons",
}
SOURCE_COLUMN = 26


def print_mix(console: Console, loop: MainLoop) -> None:
    """Counts by kind for one step along K, and each kind's share of all instructions."""
    heading(console, "main loop", f"{len(loop.executed)} instructions, {loop.code_bytes / 1024:.1f} KiB; {loop.how}")
    mix = loop.mix
    total = sum(count for kind, count in mix.items() if not kind.endswith(".reuse"))
    title = f"  a thread, for one {loop.unit}"
    console.print(Text(f"{title:<30}{'count':>8}{'share':>9}", style="cyan"), soft_wrap=True)
    for kind in sorted((kind for kind in mix if not kind.endswith(".reuse")), key=_order):
        words = KIND_WORDS.get(kind.partition(".")[0], "")
        if kind in FMAS:
            words = f"{_count(mix.get(f'{kind}.reuse', Fraction(0)))} keep an operand for the next (.reuse)"
        line = f"  {kind:<28}{_count(mix[kind]):>8}{percent(float(mix[kind] / total)):>8}%   {words}"
        console.print(Text(line.rstrip()), soft_wrap=True)
    if not {"LDL", "STL"} & set(mix):
        console.print(Text(f"  {'spills':<28}{'none':>8}"), soft_wrap=True)


def _order(kind: str) -> tuple[int, str]:
    return KIND_ORDER.index(kind.partition(".")[0]), kind


def _count(count: Fraction) -> str:
    return str(count) if count.denominator == 1 else f"{float(count):.2f}"


def print_source_lines(console: Console, loop: MainLoop, config: Config) -> None:
    """Which line of the kernel asks for each memory instruction and barrier of the main loop."""
    by_line: defaultdict[int, defaultdict[str, Fraction]] = defaultdict(lambda: defaultdict(Fraction))
    for item in loop.executed:
        kind = kind_of(item.instruction)
        memory = kind.partition(".")[0] in KIND_WORDS and kind not in ("branch", "other", "HMMA", "HGMMA")
        if memory and item.instruction.line is not None and not item.instruction.never_executes:
            by_line[item.instruction.line][kind] += item.times
    if not by_line:
        return
    source = config.rung.source.splitlines()
    title = f"\n  by line of {config.rung.entry}.cu, as the compiler's line table has it"
    console.print(Text(title, style="cyan"), soft_wrap=True)
    for number, kinds in sorted(by_line.items()):
        asked = ", ".join(
            f"{_count(count)} {kind}" for kind, count in sorted(kinds.items(), key=lambda k: _order(k[0]))
        )
        code = source[number - 1].strip().partition("  //")[0] if number <= len(source) else ""
        line = Text(f"  {asked:<{SOURCE_COLUMN}}").append(f"{number:>4} ", style="dim").append(code)
        line.truncate(console.width, overflow="ellipsis")
        console.print(line, soft_wrap=True)
