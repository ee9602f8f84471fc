"""Markdown tables from records. Never measures: every figure is a row's own, labelled with where it was taken."""

from __future__ import annotations

from collections.abc import Iterable

from tilewright.lab.ceilings_command import bytes_per_sm_clock, rate
from tilewright.lab.outcomes import changed_settings, size_of
from tilewright.lab.render import INSTRUCTIONS, duration, percent, share
from tilewright.lab.suite_summary import best_rows, chosen_rows, how_launched, means_of
from tilewright.measure.modes import GRAPH, STEADY, SUSTAINED
from tilewright.record import Record, Row, compute_ceiling, tries_every

PART_ROWS = 3
"""A record of no more rows than this is of one rung, not of a ladder."""


def caption(record: Record) -> str:
    """Card, clocks, versions and commit of a record in one sentence."""
    env = record.environment
    device, measured, versions = env["device"], env["measurement"], env["versions"]
    floor = "" if measured.get("aa_floor") is None else f"A/A floor {percent(measured['aa_floor'])}%, "
    return (
        f"{device['name']} ({device['sm_count']} SMs, median SM clock {measured['median_sm_mhz']:.0f} MHz), "
        f"{env['date']}, {measured['rounds']} rounds, {floor}NVRTC {versions['nvidia-cuda-nvrtc']}, "
        f"cuBLAS {versions['nvidia-cublas']} through {env['baseline'].split(', ')[1]}, commit `{env['commit']}`."
    )


def ladder_table(record: Record, most: Row | None = None) -> str:
    """One ladder record as a Markdown table with its caption; beside it the measured compute ceiling `most`, if any."""
    of_peak = _dtype(record) == "float32"
    most_tflops = None if most is None else most.tflops
    instruction = "" if most is None else INSTRUCTIONS[most.rung]
    measured = "" if most_tflops is None else f" % of measured {instruction} |"
    measurement = record.environment["measurement"]
    mode = measurement.get("mode", STEADY)
    replayed = measurement.get("launch") == GRAPH and mode != SUSTAINED
    title = size_of(record.rows[0]) + ("" if mode == STEADY else f", {mode}") + (", in graphs" if replayed else "")
    lines = [
        f"| {title} | time | TFLOP/s | % of cuBLAS [95% interval] |"
        f"{' % of FP32 peak |' if of_peak else ''}{measured} × the rung below | registers | occupancy |",
        f"|---|---:|---:|---:|{'---:|' * (of_peak + bool(measured))}---:|---:|---:|",
        *(_line(row, of_peak, most_tflops) for row in record.rows if row.time_us is not None),
    ]
    taken = "" if most_tflops is None else f" Measured {instruction}: {most_tflops:.1f} TFLOP/s."
    return "\n".join([*lines, "", caption(record) + taken])


def _dtype(record: Record) -> str:
    return str(record.rows[0].problem.get("dtype", "float32"))


def _line(row: Row, of_peak: bool, most_tflops: float | None) -> str:
    peak = [percent(row.fraction_of_peak) if row.fraction_of_peak is not None else ""] if of_peak else []
    of_ceiling = [] if most_tflops is None else [percent(row.tflops / most_tflops) if row.tflops is not None else ""]
    cells = (
        _label(row),
        duration(row.time_us) if row.time_us is not None else "",
        f"{row.tflops:.2f}" if row.tflops is not None else "",
        share(row.ratio_to_baseline) if row.ratio_to_baseline is not None else "",
        *peak,
        *of_ceiling,
        f"{row.gain_over_below:.2f}" if row.gain_over_below is not None else "",
        f"{row.registers}" if row.registers is not None else "",
        f"{100 * row.occupancy:.1f}%" if row.occupancy is not None else "",
    )
    return f"| {' | '.join(cells)} |"


def _label(row: Row) -> str:
    """The rung, with the settings that differ from its defaults."""
    if row.number is None:
        return row.rung
    return " ".join([f"`{row.rung}`", *(f"{name}={value}" for name, value in changed_settings(row).items())])


def ladder_tables(records: Iterable[Record]) -> str:
    """Every ladder record that was timed: whole ladders first, then parts of one; the largest problem first."""
    known = list(records)
    timed = [r for r in known if r.command == "ladder" and any(row.time_us is not None for row in r.rows)]
    timed.sort(key=lambda r: (r.rows[0].track != "simt", len(r.rows) <= PART_ROWS, -r.rows[0].problem["m"]))
    return "\n\n".join(
        ladder_table(record, compute_ceiling(known, record.environment["device"]["name"], _dtype(record)))
        for record in timed
    )


def suite_table(record: Record) -> str:
    """The fastest of our kernels for each shape of a suite, as a Markdown table with its caption."""
    lines = ["| class | shape | kernel | time | % of cuBLAS [95% interval] |", "|---|---|---|---:|---:|"]
    for row in best_rows(record):
        ratio = "" if row.ratio_to_baseline is None else share(row.ratio_to_baseline)
        shape, time = f"{size_of(row)} {row.problem['layout']}", "" if row.time_us is None else duration(row.time_us)
        lines.append(f"| {row.shape_class or ''} | {shape} | {_label(row)} | {time} | {ratio} |")
    env = record.environment
    compiler = env["versions"]["nvidia-cuda-nvrtc"]
    taken = f"{env['device']['name']}, {env['date']}, NVRTC {compiler}, commit `{env['commit']}`."
    return "\n".join([*lines, "", taken])


FASTEST, OWN_CHOICE, CHOICE = KERNELS = ("own, the fastest", "own, as chosen", "as the library chooses")


def suite_means(records: Iterable[Record], *, brief: bool = False) -> str:
    """The means of every suite by class: of the fastest own kernels where all were tried, else of what was chosen.

    Where it is to be brief, only what is over whole suites.
    """
    lines = [
        "| suite | kernels | class | shapes | % of cuBLAS, geometric mean | lowest | floor, % of time | commit |",
        "|---|---|---|---:|---:|---:|---:|---|",
    ]
    parts: dict[tuple[str, str, str], list[Record]] = {}
    for record in records:
        about = record.about or {}
        if record.command == "bench":
            kernels = FASTEST if tries_every(record) else OWN_CHOICE if about.get("own") else CHOICE
            dtype = _dtype(record)
            suite = about.get("suite", "") + ("" if dtype == "float32" else f", {dtype}")
            parts.setdefault((suite, kernels, how_launched(record)), []).append(record)
    for suite, kernels, how in sorted(parts, key=lambda part: (part[0], KERNELS.index(part[1]), part[2])):
        of = parts[suite, kernels, how]
        commits = ", ".join(dict.fromkeys(f"`{record.environment['commit']}`" for record in of))
        means = means_of(row for record in of for row in (best_rows if kernels == FASTEST else chosen_rows)(record))
        for mean in means[-1:] if brief else means:
            figures = (percent(mean.mean), percent(mean.lowest), percent(mean.of_floor))
            lines.append(f"| {' | '.join((suite, kernels + how, mean.name, f'{mean.shapes}', *figures, commits))} |")
    return "\n".join(lines)


def suite_tables(records: Iterable[Record]) -> str:
    """Every record of a suite in which all candidates were tried."""
    suites = filter(tries_every, records)
    return "\n\n".join(
        f"### {(record.about or {}).get('suite', '')}{how_launched(record)}\n\n{suite_table(record)}"
        for record in suites
    )


def ceilings_table(record: Record) -> str:
    """One ceilings record as a Markdown table with its caption."""
    lines = ["| ceiling | rate | % of theoretical | bytes an SM and clock |", "|---|---:|---:|---:|"]
    for row in record.rows:
        fraction = "" if row.fraction_of_peak is None else percent(row.fraction_of_peak)
        per_clock = bytes_per_sm_clock(row, record)
        told = rate(row) if row.failure is None else f"not here: {row.verdict}"
        cells = (f"{row.summary}", told, fraction, "" if per_clock is None else f"{per_clock:.1f}")
        lines.append(f"| {' | '.join(cells)} |")
    env = record.environment
    taken = f"{env['device']['name']}, {env['date']}, {env['measurement']['rounds']} rounds, commit `{env['commit']}`."
    return "\n".join([*lines, "", taken])


def ceilings_tables(records: Iterable[Record]) -> str:
    """Every record of ceilings."""
    return "\n\n".join(ceilings_table(record) for record in records if record.command == "ceilings")
