import io

from rich.console import Console

from tilewright.lab.render import duration, emulator_columns, gpu_columns, percent
from tilewright.lab.row_printer import RowPrinter, fitting, heading_lines, row_lines
from tilewright.record import Ratio, Record, Row

CUBE = {"m": 4096, "n": 4096, "k": 4096, "layout": "NN", "dtype": "float32"}


def row(**fields) -> Row:
    return Row(**{"rung": "k08_warp_tile", "number": 8, "summary": "A lesson.", "problem": CUBE, **fields})


def timed() -> Row:
    return row(
        time_us=3493.7,
        tflops=39.34,
        ratio_to_baseline=Ratio(0.768, 0.769, 0.770),
        fraction_of_peak=0.588,
        verified=True,
        registers=127,
        occupancy=0.25,
    )


def text(lines) -> str:
    return "\n".join(line.plain for line in lines)


def test_figures_keep_three_digits():
    assert [duration(t) for t in (6.299, 97.46, 999.6, 3493.7, 276653.9)] == [
        *("6.3 µs", "97.5 µs", "1 ms", "3.49 ms", "277 ms"),
    ]
    assert [percent(x) for x in (0.00971, 0.0913, 0.7694, 1.08)] == ["0.97", "9.13", "76.9", "108.0"]


def test_what_is_not_claimed_is_left_blank():
    lines = row_lines(gpu_columns(with_baseline=True), row(verified=True))
    assert lines[0].plain.split() == ["k08_warp_tile", "✓", "exact"]


def test_a_timed_row_says_everything_it_has():
    line = row_lines(gpu_columns(with_baseline=True), timed())[0].plain
    for figure in ("3.49 ms", "39.34", "76.9 [76.8, 77.0]", "58.8", "127", "25.0%"):
        assert figure in line


def test_without_a_baseline_there_is_no_such_column():
    assert "cuBLAS" not in text(heading_lines(gpu_columns(with_baseline=False)))
    assert "cuBLAS" in text(heading_lines(gpu_columns(with_baseline=True)))


def test_recorded_times_are_labelled_as_not_this_run_and_never_from_the_wrong_rung():
    record = Record(command="ladder", environment={"device": {"name": "NVIDIA H200"}}, rows=[timed()])
    columns = emulator_columns([record])
    assert "not this run" in text(heading_lines(columns))
    assert "3.49 ms, 76.9% of cuBLAS (H200, 4096³)" in text(row_lines(columns, row()))
    assert "ms" not in text(row_lines(columns, row(rung="k02_coalesced")))


def test_a_narrow_terminal_moves_columns_below_and_breaks_between_words():
    columns = gpu_columns(with_baseline=True)
    assert fitting(columns, 80) < len(columns) == fitting(columns, 200)
    lines = row_lines(columns, timed(), 60)
    assert all(len(line.plain) <= 60 for line in lines)
    assert "76.9 [76.8, 77.0]" in text(lines)


def test_a_failure_replaces_the_lesson():
    shown = text(row_lines(gpu_columns(with_baseline=True), row(verified=False, failure="Deadlock", verdict="32 wait")))
    assert "✗ Deadlock" in shown and "32 wait" in shown and "A lesson." not in shown


def test_in_a_pipe_rows_that_may_change_are_printed_once_in_their_last_form():
    out = io.StringIO()
    with RowPrinter(Console(file=out), gpu_columns(with_baseline=True), final=False) as printer:
        printer.row(row(verified=True))
        printer.status("measuring")
        printer.row(timed())
    assert out.getvalue().count("k08_warp_tile") == 1
    assert "3.49 ms" in out.getvalue() and "measuring" not in out.getvalue()


def test_on_a_terminal_the_table_is_redrawn_with_its_status():
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=160)
    with RowPrinter(console, gpu_columns(with_baseline=True), final=False) as printer:
        printer.row(row(verified=True))
        printer.status("measuring 5 arms")
        printer.row(timed())
    assert "measuring 5 arms" in out.getvalue() and "3.49 ms" in out.getvalue()


def specialised() -> Row:
    return row(
        **{"registers": 168, "smem_bytes": 229376, "stages": 4, "verified": True},
        tflops=720.0,
        sass={"HGMMA": 4, "SYNCS": 2, "other": 70},
        roles=[
            {"role": "producer", "registers": 40, "loop": {"UTMALDG": 2}, "elsewhere": {"SYNCS": 1}},
            {"role": "consumer", "registers": 232, "loop": {"HGMMA": 4}, "elsewhere": {"HGMMA": 16, "STSM.x4": 32}},
        ],
    )


def test_a_rung_of_the_tensor_track_shows_roles_stages_and_what_it_is_made_of():
    wgmma = row(rung="ceiling_wgmma", tflops=900.0)
    columns = gpu_columns(with_baseline=True, tensor=True, ceiling=wgmma)
    shown, headings = text(row_lines(columns, specialised())), text(heading_lines(columns))
    for told in ("168: 40/232", "224 KiB in 4", "HGMMA 4, UTMALDG 2 (STSM.x4 32)", "80.0"):
        assert told in shown
    assert "% of measured" in headings and "wgmma" in headings and "FP32" not in headings


def test_without_a_recorded_ceiling_there_is_no_share_of_it():
    assert "of measured" not in text(heading_lines(gpu_columns(with_baseline=True, tensor=True)))
    assert "224 KiB in 4" in text(row_lines(emulator_columns([], tensor=True), specialised()))


def test_what_an_architecture_cannot_run_is_passed_over_and_not_failed():
    lacking = row(failure="Unsupported", verdict="k08_warp_tile: needs tma, which sm_89 lacks; sm_90a can run it")
    shown = text(row_lines(gpu_columns(with_baseline=True), lacking))
    assert "– skipped" in shown and "needs tma, which sm_89 lacks" in shown and "✗" not in shown
