"""The command line: arguments and exit statuses. The work, printing included, is in `lab`.

Exit statuses: 0 all held; 1 a kernel failed or gave a wrong result; 2 what was asked for cannot be; 3 this machine
lacks something; 130 interrupted.
"""

from __future__ import annotations

import functools
import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from tilewright.errors import InvalidInput, Missing, TilewrightError

FAILED, INVALID, MISSING, INTERRUPTED = 1, 2, 3, 130

app = typer.Typer(
    name="tilewright",
    help="The ladder of GPU matrix multiplication: compiled, verified, explained, on a GPU or on a plain CPU.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object to standard output and nothing else.")]
OneRung = Annotated[str, typer.Argument(help="A rung: its name, its number or the part before the underscore.")]
Settings = Annotated[list[str] | None, typer.Option("--set", help="NAME=VALUE, or RUNG.NAME=VALUE; repeatable.")]
Arch = Annotated[str, typer.Option("--arch", help="Architecture to compile for.")]
Device = Annotated[int, typer.Option("--device", help="Number of the GPU.")]
Backend = Annotated[str, typer.Option("--backend", help="auto (a GPU if there is one), cuda or emulator.")]
SizeM = Annotated[int | None, typer.Option("-m", "--m", help="Rows of A and D.")]
SizeN = Annotated[int | None, typer.Option("-n", "--n", help="Columns of B and D.")]
SizeK = Annotated[int | None, typer.Option("-k", "--k", help="Columns of A, rows of B.")]
Mode = Annotated[
    str,
    typer.Option(
        "--mode", help="On a GPU: steady (back to back), burst (a gap before each round) or sustained (0.5 s of each)."
    ),
]
Launch = Annotated[
    str | None,
    typer.Option(
        "--launch",
        help="On a GPU: stream (launches one by one, the default) or graph (captured once and replayed, as --mode "
        "sustained always does).",
    ),
]
Cache = Annotated[str, typer.Option("--cache", help="On a GPU: operands cold (a ring past the L2) or warm (one set).")]
Line = Annotated[int | None, typer.Option(help="Draw which bank serves which lane at this source line.")]
Offline = Annotated[bool, typer.Option("--offline", help="Build and compare only, even where there is a GPU.")]
Rounds = Annotated[int, typer.Option("--rounds", help="On a GPU, the most rounds to measure.")]
Budget = Annotated[float, typer.Option("--budget", help="On a GPU, the most seconds to measure.")]
CardName = Annotated[str, typer.Option("--card", help="The card, as in 'RTX 5080'.")]
SuiteName = Annotated[str, typer.Argument(help="suite, models, deepbench_training, or a CSV with columns m,n,k.")]
SuiteDtype = Annotated[str | None, typer.Option("--dtype", help="Take the shapes for products of this type.")]
SuiteClass = Annotated[list[str] | None, typer.Option("--class", help="Only this class; repeatable.")]
SuiteLimit = Annotated[int | None, typer.Option("--limit", help="Only the first so many shapes.")]
Svg = Annotated[str | None, typer.Option(help="With --line: write the drawing to this file as well.")]


def command(function: Callable[..., int]) -> Callable[..., None]:
    """Register a command whose function returns its exit status; its errors become one line and a status."""

    @functools.wraps(function)
    def guarded(*args: object, **kwargs: object) -> None:
        try:
            status = function(*args, **kwargs)
        except KeyboardInterrupt:
            status = INTERRUPTED
        except TilewrightError as error:
            print(f"error: {error}", file=sys.stderr)
            status = INVALID if isinstance(error, InvalidInput) else MISSING if isinstance(error, Missing) else FAILED
        raise typer.Exit(status)

    app.command()(guarded)
    return guarded


@command
def ladder(
    m: SizeM = None,
    n: SizeN = None,
    k: SizeK = None,
    rung: Annotated[list[str] | None, typer.Option("--rung", help="Only this rung; repeatable.")] = None,
    set_: Settings = None,
    arch: Arch = "sm_90a",
    backend: Backend = "auto",
    device: Device = 0,
    rounds: Annotated[int, typer.Option(help="On a GPU, the most rounds to measure.")] = 80,
    budget: Annotated[float, typer.Option(help="On a GPU, the most seconds to measure.")] = 60.0,
    mode: Mode = "steady",
    launch: Launch = None,
    cache: Cache = "cold",
    dtype: Annotated[
        str | None, typer.Option(help="Elements: float32, tfloat32, bfloat16 or float16; chooses the rungs.")
    ] = None,
    layout: Annotated[str | None, typer.Option(help="NN, NT (x·Wᵀ), TN or TT; default: the rungs' own.")] = None,
    as_json: Json = False,
) -> int:
    """Verify every rung and, on a GPU, time it against cuBLAS. Sizes default to 4096³ on a GPU, else to 256³."""
    from tilewright.lab.ladder_command import LadderRequest, run_ladder

    request = LadderRequest(
        m, n, k, rung or [], set_ or [], arch, backend, device, rounds, budget, mode, cache, dtype, layout, launch
    )
    return run_ladder(request, as_json=as_json)


@command
def rungs(
    rung: Annotated[str | None, typer.Argument(help="Show this one whole.")] = None, as_json: Json = False
) -> int:
    """List the rungs, or explain one."""
    from tilewright.lab.listing import show_rungs

    return show_rungs(rung, as_json=as_json)


@command
def inspect(
    rung: Annotated[str, typer.Argument(help="A rung, or 'all' for a table.")],
    set_: Settings = None,
    arch: Annotated[
        str | None,
        typer.Option(help="Architecture to compile for, or 'all' for a table. Default: the card's or sm_90a."),
    ] = None,
    card: Annotated[str | None, typer.Option(help="Card of the roofline, as in 'RTX 5080'.")] = None,
    m: SizeM = None,
    n: SizeN = None,
    k: SizeK = None,
    memory: Annotated[bool, typer.Option("--memory", help="Trace it in the emulator: banks and sectors.")] = False,
    line: Line = None,
    svg: Svg = None,
    ncu: Annotated[bool, typer.Option("--ncu", help="Count it on the GPU with Nsight Compute, beside cuBLAS.")] = False,
    as_json: Json = False,
) -> int:
    """Explain a config from its declaration and its binary. Needs no GPU and no C++ compiler.

    With --memory, which needs a C++ compiler: wavefronts and sectors by source line and K-tile, counted in the
    emulator, beside the binary's own instructions. With --ncu, which needs a GPU and Nsight Compute: stalls, issue
    rate, wavefronts, L2 hit rate and DRAM bytes.
    """
    if ncu:
        from tilewright.lab.ncu_command import inspect_ncu

        others = {"--memory": memory, "--arch": arch, "--card": card, "--line": line, "--svg": svg}
        return inspect_ncu(
            rung, set_ or [], (m, n, k), [name for name, given in others.items() if given], as_json=as_json
        )
    if memory:
        from tilewright.lab.memory_command import MemoryRequest, inspect_memory
        from tilewright.lab.memory_table import Picture

        request = MemoryRequest(rung, set_ or [], (m, n, k), arch or "sm_90a", Picture(line, svg))
        return inspect_memory(request, as_json=as_json)
    from tilewright.lab.inspect_command import InspectRequest, run_inspect

    return run_inspect(InspectRequest(rung, set_ or [], arch, card, (m, n, k)), as_json=as_json)


@command
def diff(
    rung: OneRung,
    other: Annotated[str | None, typer.Argument(help="The rung to compare with; left out, the same one.")] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", help="A.NAME=VALUE for the first, B.NAME=VALUE for the second; repeatable."),
    ] = None,
    arch: Arch = "sm_90a",
    m: SizeM = None,
    n: SizeN = None,
    k: SizeK = None,
    html: Annotated[Path | None, typer.Option("--html", help="Also write one page that needs no network.")] = None,
    as_json: Json = False,
) -> int:
    """Compare two rungs, or two settings of one. Text, parameters, accesses, resources, times; needs no GPU."""
    from tilewright.lab.diff_command import show
    from tilewright.lab.diffing import compare

    comparison = compare(rung, other, set_ or [], arch, (m, n, k))
    if html is not None:
        from tilewright.report.diff_page import diff_page
        from tilewright.report.html import write_page

        write_page(html, diff_page(comparison))
    return show(comparison, as_json=as_json)


@command
def verify(
    rung: OneRung,
    set_: Settings = None,
    backend: Backend = "auto",
    device: Device = 0,
    schedule: Annotated[str, typer.Option(help="Emulator: default, reverse, random or all.")] = "all",
    seed: Annotated[int, typer.Option(help="Emulator: seed of the random schedule.")] = 0,
    races: Annotated[bool, typer.Option("--races", help="In the emulator: check order and place instead.")] = False,
    as_json: Json = False,
) -> int:
    """Check a rung by every layer, under every schedule.

    With --races: races, uninitialised reads and misplaced accesses, each with its lines and threads.
    """
    if races:
        from tilewright.lab.races_command import verify_races

        return verify_races(rung, set_ or [], schedule, seed, as_json=as_json)
    from tilewright.lab.verify_command import run_verify

    return run_verify(rung, set_ or [], backend, device, schedule, seed, as_json=as_json)


@command
def trace(
    file: Annotated[str, typer.Argument(help="A .cu file: a kernel and its device functions.")],
    entry: Annotated[str, typer.Option(help="The kernel, or an instance of a template: 'sgemm<64, 8>'.")],
    block: Annotated[str, typer.Option(help="Threads of a CTA: X, X,Y or X,Y,Z.")],
    grid: Annotated[str, typer.Option(help="CTAs: X, X,Y or X,Y,Z.")] = "1",
    arg: Annotated[
        list[str] | None, typer.Option(help="NAME:TYPE[COUNT] or NAME:TYPE=VALUE, in order: A:const float[64].")
    ] = None,
    smem: Annotated[int, typer.Option(help="Bytes of dynamic shared memory.")] = 0,
    schedule: Annotated[str, typer.Option(help="default, reverse or random.")] = "default",
    seed: Annotated[int, typer.Option(help="Seed of the random schedule.")] = 0,
    line: Line = None,
    svg: Svg = None,
    as_json: Json = False,
) -> int:
    """Run your own kernel in the emulator and watch it. Banks, sectors, races, uninitialised and misplaced accesses."""
    from tilewright.lab.memory_table import Picture
    from tilewright.lab.trace_command import TraceRequest, trace_own

    picture = Picture(line, svg)
    request = TraceRequest(file, entry, grid, block, arg or [], smem, schedule, seed, picture)
    return trace_own(request, as_json=as_json)


@command
def compare(
    rung: OneRung,
    other: Annotated[str, typer.Argument(help="The rung of B; the same one again with what --set and others change.")],
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", help="A.NAME=VALUE for the first, B.NAME=VALUE for the second; repeatable."),
    ] = None,
    beta: Annotated[list[str] | None, typer.Option(help="B=specialised, runtime or always_read.")] = None,
    guards: Annotated[list[str] | None, typer.Option(help="B=on or B=off, where sizes divide.")] = None,
    option: Annotated[list[str] | None, typer.Option(help="B=maxrregcount=128 or B=ptxas=-O1; repeatable.")] = None,
    source: Annotated[list[str] | None, typer.Option(help="B=FILE: an edited copy of the rung's .cu.")] = None,
    bundle: Annotated[str, typer.Option(help="Name several differences that are to be judged as one.")] = "",
    m: SizeM = None,
    n: SizeN = None,
    k: SizeK = None,
    arch: Arch = "sm_90a",
    device: Device = 0,
    offline: Offline = False,
    rounds: Rounds = 80,
    budget: Budget = 20.0,
    mode: Mode = "steady",
    launch: Launch = None,
    cache: Cache = "cold",
    as_json: Json = False,
) -> int:
    """Say which of two builds is faster, B or A, and whether their difference can say why.

    Two that differ in more than one thing are called confounded, unless --bundle names them as one.
    """
    from tilewright.lab.compare_command import CompareRequest, run_compare
    from tilewright.lab.comparing import Sides
    from tilewright.lab.measuring import Effort

    sides = Sides(rung, other, set_ or [], beta or [], guards or [], option or [], source or [])
    effort = Effort(rounds, budget, mode, cache, launch)
    request = CompareRequest(sides, bundle, (m, n, k), arch, device, offline, effort)
    return run_compare(request, as_json=as_json)


@command
def experiment(
    name: Annotated[str, typer.Argument(help="An experiment, 'all', 'list', or a .toml file of your own.")],
    arch: Arch = "sm_90a",
    device: Device = 0,
    offline: Offline = False,
    rounds: Rounds = 80,
    budget: Annotated[float | None, typer.Option(help="The most seconds to measure each; default: its own.")] = None,
    out: Annotated[Path | None, typer.Option(help="Keep a record of each in this folder.")] = None,
    as_json: Json = False,
) -> int:
    """Answer a question that has a prediction written down. Without a GPU it is built and its causes are checked."""
    from tilewright.lab.experiment_command import ExperimentRequest, run_experiments

    request = ExperimentRequest(name, arch, device, offline, rounds, budget, out)
    return run_experiments(request, as_json=as_json)


@command
def replay(
    record: Annotated[Path, typer.Argument(help="A record: what a command's --json wrote.")],
    device: Device = 0,
    offline: Offline = False,
    rounds: Annotated[int | None, typer.Option(help="The most rounds to measure; default: the record's.")] = None,
    budget: Budget = 60.0,
    as_json: Json = False,
) -> int:
    """Build and measure a record again. Its figures are reproduced, refuted, or their premise has expired."""
    from tilewright.lab.replay_command import ReplayRequest, run_replay

    return run_replay(ReplayRequest(record, device, offline, rounds, budget), as_json=as_json)


@command
def ceilings(device: Device = 0, as_json: Json = False) -> int:
    """Measure what a GPU can do at most. FMA pipe, shared memory, L2 and DRAM."""
    from tilewright.lab.ceilings_command import run_ceilings

    return run_ceilings(device, as_json=as_json)


@command
def tune(
    rung: Annotated[str | None, typer.Argument(help="The rung whose configs are searched.")] = None,
    m: SizeM = None,
    n: SizeN = None,
    k: SizeK = None,
    only: Annotated[list[str] | None, typer.Option(help="NAME=VALUE,VALUE: only these; repeatable.")] = None,
    strategy: Annotated[str, typer.Option(help="model, random or exhaustive.")] = "model",
    effort: Annotated[str, typer.Option(help="none (what is known), quick or full.")] = "quick",
    trials: Annotated[int | None, typer.Option(help="Configs to try at most, in place of the effort's.")] = None,
    budget: Annotated[float | None, typer.Option(help="Seconds to try them, in place of the effort's.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the strategy and of the final rounds.")] = 0,
    device: Annotated[list[int] | None, typer.Option(help="Number of a GPU; repeatable, to share the work.")] = None,
    again: Annotated[bool, typer.Option("--again", help="Try anew what is known.")] = False,
    out: Annotated[Path | None, typer.Option(help="Write the record to this file.")] = None,
    export: Annotated[Path | None, typer.Option(help="Write all that is known to this file; no search.")] = None,
    import_: Annotated[Path | None, typer.Option("--import", help="Add what such a file knows; no search.")] = None,
    expired: Annotated[bool, typer.Option("--expired", help="Re-test what other conditions chose.")] = False,
    as_json: Json = False,
) -> int:
    """Search a rung's configs for the fastest on a GPU. Each is verified first; what is known is not tried again.

    With --expired: winners and defaults whose card, driver, compiler or source changed, and whether they still hold.
    """
    from tilewright.lab.expired_command import run_expired
    from tilewright.lab.tune_command import TuneOptions, export_store, import_store, run_tune

    if export is not None:
        return export_store(export)
    if import_ is not None:
        return import_store(import_)
    if expired:
        return run_expired((m, n, k), (device or [0])[0], seed, as_json=as_json)
    if rung is None:
        raise InvalidInput("RUNG: must be named, as in `tilewright tune k12`; `tilewright rungs` lists them")
    searched = ((m, n, k), only or [], strategy, effort, trials, budget, seed)
    return run_tune(TuneOptions(rung, *searched, device or [], again, out), as_json=as_json)


@command
def select(
    m: Annotated[int, typer.Argument(help="Rows of A and D.")],
    n: Annotated[int, typer.Argument(help="Columns of B and D.")],
    k: Annotated[int, typer.Argument(help="Columns of A, rows of B.")],
    dtype: Annotated[str, typer.Option(help="float32, tfloat32, bfloat16 or float16.")] = "float32",
    layout: Annotated[str, typer.Option(help="NN, NT (x·Wᵀ), TN or TT.")] = "NN",
    card: CardName = "H200",
    alpha: Annotated[float, typer.Option(help="What A·B is multiplied by.")] = 1.0,
    beta: Annotated[float, typer.Option(help="What C is multiplied by; 0 leaves it out.")] = 0.0,
    as_json: Json = False,
) -> int:
    """Say which kernel a product gets, and why. What it expects, the runner-up, what was refused; needs no GPU."""
    from tilewright.lab.select_command import SelectRequest, run_select

    return run_select(SelectRequest(m, n, k, dtype, layout, card, alpha, beta), as_json=as_json)


@command
def warm(
    suite: SuiteName,
    dtype: SuiteDtype = None,
    class_: SuiteClass = None,
    limit: SuiteLimit = None,
    card: CardName = "H200",
) -> int:
    """Compile ahead what a suite's shapes would choose, into the cache. Needs no GPU."""
    from tilewright.lab.warm_command import WarmRequest, run_warm

    return run_warm(WarmRequest(suite, dtype, class_ or [], limit, card))


@command
def bench(
    suite: SuiteName,
    dtype: SuiteDtype = None,
    class_: SuiteClass = None,
    limit: SuiteLimit = None,
    own: Annotated[bool, typer.Option("--own", help="Never the framework's own product.")] = False,
    every: Annotated[bool, typer.Option("--every", help="Time every candidate too, for `calibrate`.")] = False,
    call: Annotated[bool, typer.Option("--call", help="Time the library call beside torch.mm.")] = False,
    mode: Mode = "steady",
    launch: Launch = None,
    cache: Cache = "cold",
    rounds: Annotated[int, typer.Option(help="The most rounds for a shape.")] = 40,
    budget: Annotated[float, typer.Option(help="Seconds for a shape; a few rounds of a long one may take more.")] = 0.5,
    device: Device = 0,
    out: Annotated[Path | None, typer.Option(help="Write the record to this file.")] = None,
    as_json: Json = False,
) -> int:
    """Time a suite of shapes against cuBLAS on a GPU. Each is verified first; means by class, the worst ten."""
    from tilewright.lab.measuring import Effort
    from tilewright.lab.suite_command import BenchRequest, run_bench

    effort = Effort(rounds, budget, mode, cache, launch)
    request = BenchRequest(suite, dtype, class_ or [], limit, own, every, device, effort, out, call)
    return run_bench(request, as_json=as_json)


@command
def calibrate(
    record: Annotated[list[Path], typer.Argument(help="Records of one card, or folders of them.")],
    out: Annotated[Path | None, typer.Option("-o", "--out", help="Write the calibration to this file.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the half of the shapes that is kept out.")] = 0,
    launch: Annotated[
        str | None, typer.Option(help="Only rows of this launch mode; left out, graphs' where a shape has such.")
    ] = None,
) -> int:
    """Fit the model of `select` to records. Says what choosing by it costs on shapes that were kept out."""
    from tilewright.lab.calibrate_command import run_calibrate

    return run_calibrate(record, out, seed, launch)


@command
def report(
    record: Annotated[
        list[Path] | None, typer.Argument(help="Records, or folders of them. Left out: those of the package.")
    ] = None,
    out: Annotated[Path, typer.Option("-o", "--out", help="The file to write.")] = Path("report.html"),
) -> int:
    """Draw records as one HTML file that needs no network."""
    from tilewright.report.command import write_report

    return write_report(record or [], out)


@command
def doctor(as_json: Json = False) -> int:
    """Say what this machine has, lacks, and how to get it."""
    from tilewright.lab.doctor import run_doctor

    return run_doctor(as_json=as_json)


def main() -> None:
    """The `tilewright` program. Prints UTF-8 whatever the locale says: in the C locale Python would refuse a ×."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="replace")
    app()
