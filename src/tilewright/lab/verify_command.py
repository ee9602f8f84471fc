"""`tilewright verify`: one rung through every layer, problem and schedule, told as it goes."""

from __future__ import annotations

import itertools

from rich.text import Text

from tilewright.declare import Config, all_rungs
from tilewright.errors import LaunchFailed
from tilewright.facts.static import bare_row
from tilewright.lab.ladder import failed, judged
from tilewright.lab.output import print_json, standard_error, standard_output
from tilewright.lab.settings import configs_of, parse_settings
from tilewright.lab.verifying import Setting, emulator_settings, problems_for, sweep
from tilewright.record import Record, Row, environment
from tilewright.run.cuda import CudaBackend
from tilewright.run.select import choose_backend
from tilewright.verify.certificate import WRONG_PASSES
from tilewright.verify.layers import Check, Verdict


def run_verify(
    query: str, settings: list[str], backend: str, device_id: int, schedule: str, seed: int, *, as_json: bool
) -> int:
    """Verify one config and print every layer's outcome under each setting. Returns the exit status."""
    rung = all_rungs().find(query)
    config = configs_of([rung], parse_settings(settings, [rung], all_rungs()))[0]
    if choose_backend(backend) == "cuda":
        chosen = [Setting(f"GPU {device_id}", lambda: CudaBackend(device_id))]
    else:
        chosen = emulator_settings(schedule, seed)
    console = standard_error() if as_json else standard_output()
    console.print(Text(f"{rung.name}  {config}", style="bold"), soft_wrap=True)
    record = Record(command="verify", environment=environment())
    for setting in chosen:
        console.print(Text(f"  {setting.label}", style="cyan"), soft_wrap=True)
        row, lines = _under(config, setting)
        record.rows.append(row)
        console.print(*lines, sep="\n", soft_wrap=True)
    if as_json:
        print_json(record.to_json())
    return int(any(row.failure for row in record.rows))


def _under(config: Config, setting: Setting) -> tuple[Row, list[Text]]:
    """The row and the lines of one setting. A launch that fails ends it; the layers before it are still told."""
    row = bare_row(config, problems_for(config)[0])
    row.backend = setting.label
    made: list[Check] = []
    try:
        made.extend(sweep(config, setting))
        judged(row, Verdict(tuple(made)))
    except LaunchFailed as error:
        failed(row, error)
    return row, [*_by_layer(made), *([Text(f"    ✗ {row.failure}: {row.verdict}", style="red")] if row.failure else [])]


def _by_layer(made: list[Check]) -> list[Text]:
    lines = []
    for layer, group in itertools.groupby(made, key=lambda check: check.layer):
        outcomes = list(group)
        held = sum(check.ok for check in outcomes)
        worst, deepest = max(check.worst_ratio for check in outcomes), max(check.problem.k for check in outcomes)
        more = {
            "bound": f", error at most {worst:.2f} of the bound",
            "certificate": f", to k = {deepest}: a wrong kernel passes with p < {WRONG_PASSES:.1e}",
        }.get(layer, "")
        mark = ("    ✓ ", "green") if held == len(outcomes) else ("    ✗ ", "bold red")
        lines.append(Text.assemble(mark, f"{layer:<12} {held} of {len(outcomes)} checks hold{more}"))
    return lines
