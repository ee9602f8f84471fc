"""`tilewright ladder`: what was asked for, on whichever backend there is, told as it goes."""

from __future__ import annotations

from dataclasses import dataclass

from rich.text import Text

from tilewright.arch import get_arch
from tilewright.compile.batch import usable_cores
from tilewright.compile.nvrtc import nvrtc_version
from tilewright.declare import Config, Registry, Rung, all_rungs
from tilewright.errors import InvalidProblem
from tilewright.lab.ladder import TENSOR, Plan, emulated_ladder
from tilewright.lab.notes import measurement_notes
from tilewright.lab.output import print_json, standard_error, standard_output
from tilewright.lab.render import UNSUPPORTED, emulator_columns, gpu_columns
from tilewright.lab.row_printer import RowPrinter
from tilewright.lab.settings import configs_of, parse_settings, sized_problem, usual_kind
from tilewright.measure.modes import COLD, STEADY, check_cache, launch_of
from tilewright.problem import ITEMSIZE_BYTES, Problem, ProblemKind, storage_dtype
from tilewright.record import Record, compute_ceiling, load_records
from tilewright.run.cuda import CudaBackend
from tilewright.run.select import choose_backend

EMULATOR_SIZE, GPU_SIZE = 256, 4096
DEFAULT_DTYPE = "float32"
REFUSALS = {"InvalidConfig", "InvalidProblem", UNSUPPORTED}


@dataclass(frozen=True)
class LadderRequest:
    """The command's arguments. A size that is None takes the backend's default."""

    m: int | None
    n: int | None
    k: int | None
    rungs: list[str]
    settings: list[str]
    arch: str
    backend: str
    device_id: int
    rounds: int
    budget_s: float
    mode: str = STEADY
    cache: str = COLD
    dtype: str | None = None
    layout: str | None = None
    launch: str | None = None

    def problem(self, default: int) -> Problem:
        """The problem asked for. Raises InvalidProblem, InvalidConfig."""
        usual = usual_kind(self.rungs_asked())
        dtype = self.dtype or usual.dtype
        kind = ProblemKind(self.layout or usual.layout, dtype, storage_dtype(dtype))
        return sized_problem((self.m, self.n, self.k), (default, default, default), kind)

    def configs(self) -> list[Config]:
        """The configs asked for, in the ladder's order. Raises UnknownName, InvalidConfig."""
        chosen = self.rungs_asked()
        return configs_of(chosen, parse_settings(self.settings, chosen, all_rungs()))

    def rungs_asked(self) -> list[Rung]:
        """Those named, or all that take the element type. Raises UnknownName, InvalidProblem."""
        return _chosen(self.rungs, self.dtype or DEFAULT_DTYPE, all_rungs())


def _chosen(queries: list[str], dtype: str, registry: Registry) -> list[Rung]:
    if dtype not in ITEMSIZE_BYTES:
        raise InvalidProblem(f"--dtype {dtype}: must be one of {', '.join(ITEMSIZE_BYTES)}")
    wanted = {registry.find(query).name for query in queries}
    taken = wanted or {name for name, rung in registry.items() if dtype in rung.requires.every_dtype}
    return [rung for name, rung in registry.items() if name in taken]


def run_ladder(request: LadderRequest, *, as_json: bool) -> int:
    """Run the ladder and print it. Returns the exit status: 0 all verified, 1 one failed, 2 one refused the problem.

    A rung that the architecture cannot run is listed with the reason; it only counts where it was asked for by name.
    """
    configs = request.configs()
    launch_of(request.launch, request.mode)
    check_cache(request.cache)
    on_gpu = choose_backend(request.backend) == "cuda"
    record = (_on_gpu if on_gpu else _emulated)(request, configs, as_json)
    if as_json:
        print_json(record.to_json())
    passed_over = set() if request.rungs else {UNSUPPORTED}
    failures = {row.failure for row in record.rows} - {None} - passed_over
    return 0 if not failures else 2 if failures <= REFUSALS else 1


def _emulated(request: LadderRequest, configs: list[Config], as_json: bool) -> Record:
    plan = Plan(request.problem(EMULATOR_SIZE), configs, get_arch(request.arch))
    console = standard_error() if as_json else standard_output()
    console.print(Text(f"tilewright ladder  {plan.problem}, in the emulator on {usable_cores()} cores", style="bold"))
    console.print(f"registers and occupancy: compiled for {plan.arch.name} by NVRTC {nvrtc_version()}\n", style="dim")
    with RowPrinter(console, emulator_columns(load_records(), tensor=_is_tensor(plan)), final=True) as printer:
        record = emulated_ladder(plan, printer.row)
    console.print(*_served_notes(record, plan), sep="\n", style="dim", soft_wrap=True)
    return record


def _on_gpu(request: LadderRequest, configs: list[Config], as_json: bool) -> Record:
    from tilewright.lab.measuring import Effort, measured_ladder
    from tilewright.measure import find_baseline

    console = standard_error() if as_json else standard_output()
    with CudaBackend(request.device_id) as gpu:
        plan = Plan(request.problem(GPU_SIZE), configs, gpu.arch)
        console.print(Text(f"tilewright ladder  {plan.problem} on {gpu.device.name}", style="bold"), soft_wrap=True)
        baseline, why_none = find_baseline()
        effort = Effort(request.rounds, request.budget_s, request.mode, request.cache, request.launch)
        tensor, device = _is_tensor(plan), str(gpu.device.name)
        ceiling = compute_ceiling(load_records(), device, plan.problem.dtype) if tensor else None
        columns = gpu_columns(with_baseline=baseline is not None, tensor=tensor, ceiling=ceiling)
        with RowPrinter(console, columns, final=False) as printer:
            record = measured_ladder(plan, gpu, baseline, effort, printer.row, printer.status)
        notes = [*_served_notes(record, plan), *measurement_notes(record), *([why_none] if why_none else [])]
        if tensor and ceiling is None:
            notes.append(f"no % of a tensor ceiling: none is recorded for {device}; `tilewright ceilings` measures it")
        for line in ["", *notes]:
            console.print(line, style="dim", soft_wrap=True)
        return record


def _is_tensor(plan: Plan) -> bool:
    return any(config.rung.track == TENSOR for config in plan.configs)


def _served_notes(record: Record, plan: Plan) -> list[str]:
    """Which rungs are not for this architecture and which are, where there are some of either kind."""
    beyond = [row.rung for row in record.rows if row.failure == UNSUPPORTED]
    served = [row.rung for row in record.rows if row.failure != UNSUPPORTED and row.number is not None]
    if not beyond:
        return []
    return [f"{plan.arch.name} cannot run {', '.join(beyond)}; {', '.join(served) or 'nothing asked for'} can serve it"]
