"""Records as one page, read without a browser. Experiments and tuning here are made up; the ladder is the package's."""

from __future__ import annotations

import itertools
import json
import re
from collections import Counter
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from tilewright.cli import app
from tilewright.lab.render import percent
from tilewright.record import RECORDS_DIR, Ratio, Record, Row
from tilewright.report.html import Html, tag
from tilewright.report.labels import NARROWEST_PX, Named, gathered, placed
from tilewright.report.parts import duration
from tilewright.report.reading import Source, read_sources
from tilewright.report.report_page import report_page
from tilewright.report.roofs import Roofs, points_of, why_above
from tilewright.report.samples_view import deviations
from tilewright.report.svg import PLOT_PX, Scale

RUNNER = CliRunner()
VOID = {"meta", "br", "hr", "img", "input", "link"}
CUBE = {"m": 4096, "n": 4096, "k": 4096, "layout": "NN", "dtype": "float32", "alpha": 1.0, "beta": 0.0}
ROOFS = Roofs(dram_tb_per_s=4.0, l2_tb_per_s=8.0, compute_tflops=60.0, compute="FFMA")


def made_up_environment(**measurement) -> dict:
    measured = {"rounds": 8, "rejected_rounds": 0, "stop": "precision", "mode": "steady", "cache": "cold"}
    clocks = {"sm_mhz": [1980, 1965, 1980, 1950, 1980, 1980, 1965, 1980], "power_w": [601.5] * 7 + [612.25]}
    return {
        "date": "2026-12-01",
        "commit": "0123456789ab",
        "versions": {"numpy": "2.5.2"},
        "device": {"name": "NVIDIA Made Up", "sm_count": 100, "l2_bytes": 50 * 2**20},
        "measurement": {
            **measured,
            **clocks,
            "aa_floor": 0.0011,
            "aa": {"low": 0.9989, "median": 1.0002, "high": 1.0011},
            **measurement,
        },
    }


def made_up_experiment(**about) -> Record:
    def arm(name: str, ratio: Ratio | None, **fields) -> Row:
        samples = [2800.0, 2801.5, 2799.25, 2802.0, 2800.5, 2798.0, 2803.0, 2800.0]
        return Row(
            rung="k12_tall_thread_tile",
            problem=CUBE,
            arm=name,
            number=12,
            verified=True,
            **{"time_us": 2800.25, "samples_us": samples, "inner": 1, "registers": 206, "occupancy": 0.125, **fields},
            ratio_to_reference=ratio,
            ratio_to_baseline=Ratio(0.960, 0.961, 0.962),
        )

    rows = [
        arm("BK=16", None),
        arm("BK=8", Ratio(1.118, 1.1212, 1.124), outcome="faster"),
        arm("BK=32", Ratio(0.871, 0.8734, 0.876), outcome="slower"),
        arm("BK=16 again", Ratio(0.9991, 1.0003, 1.0014), outcome="equivalent"),
        arm("BK=12", Ratio(0.97, 1.004, 1.03), outcome="inconclusive"),
        arm(
            "BK=8, run-time β",
            Ratio(1.09, 1.1, 1.11),
            outcome="confounded",
            causes=[
                {"kind": "constant", "what": "BK", "reference": 16, "arm": 8},
                {"kind": "constant", "what": "BETA_MODE", "reference": 0, "arm": 2},
            ],
        ),
        Row(
            rung="k12_tall_thread_tile",
            problem=CUBE,
            arm="BK=64",
            verified=False,
            failure="InvalidConfig",
            verdict="BK=64: shared memory does not fit",
        ),
    ]
    asked = {
        "experiment": "made_up_k_depth",
        "question": "How deep should a K-tile be?",
        "claim": "Sixteen is best & eight < sixteen.",
        "prediction": "Eight wins by a tenth: the loop fits the instruction cache.",
        "reference": "BK=16",
        "arms": [
            {"arm": "BK=16", "candidate": {"rung": "k12_tall_thread_tile"}},
            {"arm": "BK=8", "against": "BK=16", "claim": "slower", "claim_verdict": "fails", "prediction": "faster"},
            {"arm": "BK=32", "against": "BK=8", "prediction": "slower", "prediction_verdict": "came true"},
        ],
        "verdict": "confounded",
        "finding": "BK=8 is 1.121 times as fast as BK=16.",
        "holds_here": False,
    }
    return Record(command="experiment", environment=made_up_environment(), rows=rows, about={**asked, **about})


def made_up_tuning() -> Record:
    rows = []
    for bm, bn, bk, wniter, threads in itertools.product((64, 128), (64, 128, 256), (8, 16, 32), (1, 2, 4), (128, 256)):
        config = {"BM": bm, "BN": bn, "BK": bk, "WNITER": wniter, "NUM_THREADS": threads, "PAD": 0}
        common = {"rung": "k12_tall_thread_tile", "problem": CUBE, "number": 12, "config": config}
        if bm * bn // threads > 192:
            rows.append(Row(**common, verified=False, failure="CompileFailed", verdict="spills 512 bytes"))
            continue
        results = bm * bn / threads
        time_us = 2700 + 9000 / results + 40 * abs(bk - 8) + 130 * abs(wniter - 2) + 0.37 * (bm % 96) + 0.11 * bn
        rows.append(Row(**common, verified=True, time_us=time_us, registers=64 + int(results), occupancy=0.125))
    rows[7] = Row(
        **{**common, "config": rows[7].config}, verified=False, failure="LaunchFailed", verdict="illegal address"
    )
    order = sorted((i for i, row in enumerate(rows) if row.time_us), key=lambda i: rows[i].time_us)
    best, tie = order[0], order[1]
    rows[best].ratio_to_baseline, rows[tie].ratio_to_baseline = Ratio(0.967, 0.969, 0.97), Ratio(0.966, 0.967, 0.969)
    rows[best].samples_us, rows[best].inner = [rows[best].time_us, rows[best].time_us + 3.5], 1
    about = {
        "space": {"BM": [64, 128], "BK": [8, 16, 32]},
        "strategy": "exhaustive",
        "effort": "full",
        "seed": 7,
        "evaluations": len(rows),
        "best": best,
        "ties": [tie],
        "rejected": {"BM % WM == 0": 1234, "NUM_THREADS % 32 == 0": 56},
    }
    return Record(command="tune", environment=made_up_environment(), rows=rows, about=about)


class Page(HTMLParser):
    """Reads a page; fails on tags that don't match. `words` is all text, `elements` every tag with its attributes."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None], tuple[str, ...]]] = []
        self.words = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs), tuple(self.open)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words += data if self.open[-1:] != ["style"] else ""

    def values(self, name: str) -> list[str]:
        return [attributes[name] for _, attributes, _ in self.elements if attributes.get(name)]

    def count(self, class_: str) -> int:
        return sum(class_ in (each or "").split() for each in self.values("class"))


def made_up_sources() -> list[Source]:
    return [
        *read_sources([]),
        Source("made-up-experiment", "rx", made_up_experiment()),
        Source("made-up-tuning", "rt", made_up_tuning()),
    ]


def page_of(*records: Record) -> Page:
    return Page(report_page([Source(f"file-{i}", f"r{i}", record) for i, record in enumerate(records)]))


@pytest.fixture(scope="module")
def text() -> str:
    return report_page(made_up_sources())


@pytest.fixture(scope="module")
def whole(text) -> Page:
    return Page(text)


# --- the file


def test_the_page_is_well_formed_and_every_link_leads_somewhere_in_it(whole):
    ids = whole.values("id")
    assert not {name: count for name, count in Counter(ids).items() if count > 1}
    links = whole.values("href")
    assert links and all(link[0] == "#" and link[1:] in ids for link in links)
    for labelled in whole.values("aria-labelledby"):
        assert set(labelled.split()) <= set(ids)


def test_the_page_needs_nothing_outside_itself(text, whole):
    assert not {"script", "link", "img", "iframe", "object"} & {name for name, *_ in whole.elements}
    assert not {"src", "onclick", "onload", "style"} & {name for _, given, _ in whole.elements for name in given}
    assert "http" not in text and "@import" not in text
    assert set(re.findall(r"url\((.)", text)) == {"#"}
    assert "prefers-color-scheme: dark" in text and "@media print" in text


def test_every_image_says_in_words_what_it_shows(whole):
    images = [given for name, given, _ in whole.elements if name == "svg" and given.get("role") == "img"]
    assert len(images) > 20 and all(given["aria-labelledby"] for given in images)
    silent = [
        (given, above)
        for name, given, above in whole.elements
        if name == "svg" and given.get("role") != "img" and given.get("aria-hidden") != "true" and "svg" not in above
    ]
    assert not silent


def test_what_stands_in_a_record_is_never_markup():
    hostile = '</td></table><script>alert("&lt;")</script> <b title=\'"\'>'
    page = page_of(made_up_experiment(question=hostile, finding=hostile, **{hostile: hostile}))
    assert "script" not in {name for name, *_ in page.elements}
    assert page.words.count(hostile) >= 3


printable = st.text(st.characters(exclude_categories=["C"]))


@given(printable, printable.filter(bool))
def test_an_element_holds_its_text_and_attributes_as_they_were(words, title):
    page = Page(tag("p", words, title=title))
    assert page.words == words and page.values("title") == [title]


def test_html_is_passed_through_and_absent_attributes_are_left_out():
    assert (
        tag("p", tag("b", "<"), Html("&amp;"), class_=None, data_label="x") == '<p data-label="x"><b>&lt;</b>&amp;</p>'
    )


# --- colours, which a browser would show


def luminance(colour: str) -> float:
    digits = colour.lstrip("#")
    channels = [
        int(part, 16) / 255 for part in (re.findall("..", digits) if len(digits) == 6 else [d * 2 for d in digits])
    ]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_text_and_marks_stand_out_from_what_is_behind_them(text, scheme):
    style = text.partition("<style>")[2].partition("@media print")[0]
    blocks = re.findall(r":root \{([^}]*)\}", style)
    colours: dict[str, str] = {}
    for block in blocks[scheme::2] if scheme == 0 else blocks:
        colours |= dict(re.findall(r"--([\w-]+): (#[0-9a-f]{3,6})\b", block))
    for front, least in (("text", 7), ("dim", 4.5), ("accent", 4.5), ("warm", 4.5)):
        for behind in ("back", "panel"):
            bright, dark = sorted((luminance(colours[front]), luminance(colours[behind])), reverse=True)
            assert (bright + 0.05) / (dark + 0.05) >= least, (front, behind)


# --- figures


@pytest.mark.parametrize("name", ["h200-ladder-4096", "h200-ladder-1024"])
def test_every_figure_of_a_ladder_is_the_records(name, whole):
    record = Record.from_json(json.loads((RECORDS_DIR / f"{name}.json").read_text(encoding="utf-8")))
    for row in record.rows:
        assert duration(row.time_us) in whole.words
        assert f"{row.tflops:.2f}" in whole.words
        if row.ratio_to_baseline is not None:
            low, median, high = (percent(getattr(row.ratio_to_baseline, end)) for end in ("low", "median", "high"))
            assert f"{median}% [{low}, {high}]" in whole.words
    names = [row.rung for row in record.rows if row.number is not None]
    places = [whole.words.index(rung) for rung in names]
    assert places == sorted(places)


def test_every_raw_sample_is_in_the_page(whole):
    for source in made_up_sources():
        for row in source.record.rows:
            assert all(str(sample) in whole.words for sample in row.samples_us or [])


def test_a_sceptic_finds_all_of_the_environment(whole):
    def leaves(value):
        for each in value.values() if isinstance(value, dict) else value:
            yield from leaves(each) if isinstance(each, dict) else [each]

    for source in made_up_sources():
        for value in leaves(source.record.environment):
            if isinstance(value, str):
                assert value in whole.words
            elif isinstance(value, list) and value and isinstance(value[0], str):
                assert all(each in whole.words for each in value)
            elif isinstance(value, list) and value:
                assert f"{min(value):g} to {max(value):g}" in whole.words
    for told in ("0.0011", "1.0002 [0.9989, 1.0011]", "A/A floor 0.11%", "steady · cold"):
        assert told in whole.words


def test_times_tell_apart_what_differs_by_a_tenth_of_a_per_cent():
    assert [duration(t) for t in (6.2994, 97.46, 999.96, 2800.25, 2803.1, 276653.9, 1234567.0)] == [
        *(
            "6.299\u00a0µs",
            "97.46\u00a0µs",
            "1.000\u00a0ms",
            "2.800\u00a0ms",
            "2.803\u00a0ms",
            "276.7\u00a0ms",
            "1235\u00a0ms",
        ),
    ]


def test_deviations_are_per_cent_of_the_median():
    row = Row(rung="k", problem={}, samples_us=[99.0, 100.0, 102.0])
    assert deviations(row) == pytest.approx([-1, 0, 2])


# --- the ladder


def test_a_failed_rung_says_how_it_failed_and_has_no_bar():
    rows = [
        Row(rung="k01_uncoalesced", number=1, problem=CUBE, verified=False, failure="WrongResult", verdict="d[3] is 7"),
        Row(rung="k02_coalesced", number=2, problem=CUBE, verified=True, time_us=100.0, tflops=1.0),
    ]
    page = page_of(Record(command="ladder", environment=made_up_environment(), rows=rows))
    assert "✗ WrongResult: d[3] is 7" in page.words and page.count("failed") == 1


def test_a_ladder_from_the_emulator_has_no_times_and_is_shown_all_the_same():
    rows = [Row(rung="k08_warp_tile", number=8, problem=CUBE, verified=True, registers=124, backend="emulator")]
    page = page_of(Record(command="ladder", environment={"backend": "emulator", "date": "2026-01-01"}, rows=rows))
    assert "No times" in page.words and "124" in page.words and "Roofline" not in page.words


# --- the roofline


def row_at(tflops: float, bytes_per_flop: float, rung: str = "k02_coalesced", **fields) -> Row:
    given = {"config": {"BM": 32, "BN": 32}, "arch": "sm_90a", **fields}
    return Row(rung=rung, problem=CUBE, tflops=tflops, global_load_bytes_per_flop=bytes_per_flop, **given)


def test_a_point_is_above_a_roof_exactly_when_it_is_faster_than_the_roof_allows():
    rows = [row_at(0.99, 4.0), row_at(1.01, 4.0), row_at(1.99, 4.0), row_at(2.01, 4.0), row_at(50.0, 0.03125)]
    assert [(p.above_dram, p.above_l2) for p in points_of(rows, ROOFS)] == [
        *((False, False), (True, False), (True, False), (True, True), (False, False)),
    ]


def test_a_row_that_says_nothing_of_its_traffic_is_no_point():
    assert points_of([row_at(1.0, None), row_at(None, 4.0)], ROOFS) == []


def test_why_a_point_is_above_names_the_sizes_where_they_are_known():
    source = Source("f", "r0", Record(command="ladder", environment=made_up_environment()))
    (point,) = points_of([row_at(3.0, 4.0)], ROOFS)
    why = why_above(point, ROOFS, source)
    assert "allow 1 TFLOP/s; it runs at 3, 3.0 times that" in why
    assert "a row band of A, BM × K or 0.5 MiB, fits the L2 of 50 MiB" in why and "above the L2's 2 TFLOP/s" in why
    for unknown in (row_at(1.5, 4.0, rung="k99_gone"), row_at(1.5, 4.0, config={"GONE": 7})):
        (point,) = points_of([unknown], ROOFS)
        assert why_above(point, ROOFS, source).endswith("Not so here: the speed alone shows it.")


def test_the_coalesced_rungs_are_called_out_and_the_tiled_ones_are_not(whole):
    called = re.findall(r"◆ ((?:k\w+ and )*k\w+) · At", whole.words)
    assert called == ["k02_coalesced and k03_flat_block"] * 2


def test_without_ceilings_of_the_card_no_roof_is_drawn():
    page = page_of(Record(command="ladder", environment=made_up_environment(), rows=[row_at(3.0, 4.0, time_us=9.0)]))
    assert "no ceilings of NVIDIA Made Up among these records" in page.words and page.count("roof") == 0


def test_a_16_bit_ladder_stands_under_the_roof_of_tensor_cores():
    ceilings = [
        Row(rung=f"ceiling_{name}", problem={}, time_us=1.0, verified=True, **rate)
        for name, rate in (
            ("dram_read", {"tb_per_s": 4.0}),
            ("l2_read", {"tb_per_s": 8.0}),
            ("ffma", {"tflops": 60.0}),
            ("wgmma", {"tflops": 900.0}),
        )
    ]
    row = row_at(300.0, 0.01, rung="t04_multistage", time_us=9.0, number=4, config=None)
    row.problem = {**CUBE, "dtype": "bfloat16", "out_dtype": "bfloat16"}
    records = [Record(command="ceilings", environment=made_up_environment(), rows=ceilings)]
    records.append(Record(command="ladder", environment=made_up_environment(), rows=[row]))
    words = page_of(*records).words
    assert "1 points under the DRAM, L2 and wgmma roofs" in words and "wgmma 900.0 TFLOP/s" in words
    assert "% of measured wgmma" in words and "% of FP32 peak" not in words
    assert "no ceilings of NVIDIA Made Up among these records for bfloat16" in page_of(records[1]).words


# --- experiments


def test_an_experiment_shows_question_prediction_claim_and_every_arms_interval(whole):
    record = made_up_experiment()
    for name in ("question", "prediction", "claim", "finding"):
        assert record.about[name] in whole.words
    assert "×1.121 [1.118, 1.124] faster" in whole.words and "×1.000 [0.999, 1.001] equivalent" in whole.words
    assert "✗ InvalidConfig: BK=64: shared memory does not fit" in whole.words
    assert "constant BK: 16 → 8; constant BETA_MODE: 0 → 2" in whole.words
    assert "×0.873 [0.871, 0.876] slower (against BK=8)" in whole.words
    for told in ("the claim", "fails", "came true"):
        assert told in whole.words


def test_the_arms_of_all_questions_are_counted_by_outcome():
    page = page_of(made_up_experiment())
    assert "1 question; arms: 1 faster, 1 slower, 1 equivalent, 1 inconclusive, 1 confounded" in page.words


def test_an_experiment_that_was_never_timed_says_so():
    rows = [Row(rung="k08_warp_tile", arm="A", problem=CUBE, registers=124)]
    page = page_of(Record(command="compare", environment={"date": "2026-01-01"}, rows=rows))
    assert "No arm of this record was timed against a reference" in page.words and "not judged" in page.words


def test_outcomes_are_told_apart_by_shape(whole):
    shapes = Counter(link.removeprefix("#mark-") for link in whole.values("href") if link.startswith("#mark-"))
    assert {"up", "down", "diamond", "circle", "cross", "star"} <= set(shapes)


# --- tuning


def test_every_trial_is_drawn_and_every_failure_is_counted(text, whole):
    record = made_up_tuning()
    timed = [row for row in record.rows if row.time_us is not None]
    landscape = next(d for d in re.findall(r'd="((?:M[\d.]+ [\d.]+h0)+)"', text) if d.count("M") == len(timed))
    places = [tuple(map(float, place)) for place in re.findall(r"M([\d.]+) ([\d.]+)h0", landscape)]
    assert places == sorted(places, key=lambda place: place[0]) == sorted(places, key=lambda place: place[1])
    failures = Counter(row.failure for row in record.rows if row.failure)
    assert f"{sum(failures.values())} configs failed" in whole.words
    for kind, count in failures.items():
        assert f"{kind}{count}" in whole.words
    assert "1290 rejected by a rule" in whole.words and "BM % WM == 01234" in whole.words


def test_the_winner_and_its_ties_are_marked(whole):
    assert "★ winner" in whole.words and "◆ tie" in whole.words and "96.9 [96.7, 97.0]" in whole.words
    titles = re.findall(r"(?:tie|winner): BM=\d+", page_of(made_up_tuning()).words)
    assert titles == ["tie: BM=128", "winner: BM=128"]


def test_only_parameters_that_were_varied_are_drawn(whole):
    drawn = {
        name.removeprefix("rt-").removesuffix("-title") for name in whole.values("id") if re.match(r"rt-[A-Z]+", name)
    }
    assert drawn - {name for name in drawn if name.endswith("-desc")} == {"BM", "BN", "BK", "WNITER", "NUM_THREADS"}


def test_a_search_without_a_single_time_is_shown():
    failed = Row(
        rung="k08_warp_tile", problem=CUBE, config={"BK": 8}, verified=False, failure="TimedOut", verdict="3 s"
    )
    page = page_of(Record(command="tune", environment=made_up_environment(), rows=[failed], about={"best": None}))
    assert "No config has a time" in page.words


# --- names of points, scales


places = st.floats(5, 80)


@given(st.lists(st.tuples(places, places), max_size=4))
def test_names_of_points_that_lie_apart_never_cover_each_other(points):
    named = [Named(f"k{i:02}", x, 25 * i + y / 8) for i, (x, y) in enumerate(points)]
    boxes = []
    for text in placed(named):
        given = dict(re.findall(r'([\w-]+)="([^"]*)"', text))
        x = float(given["x"].rstrip("%")) / 100 * NARROWEST_PX + float(given["dx"])
        y = float(given["y"].rstrip("%")) / 100 * PLOT_PX + float(given["dy"])
        left = x - {"start": 0, "middle": 10.5, "end": 21}[given["text-anchor"]]
        boxes.append((left, y - 11, left + 21, y + 2))
    for a, b in itertools.combinations(boxes, 2):
        assert a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]


def test_points_on_one_another_share_a_name():
    got = gathered([Named("k02", 50, 50), Named("k09", 10, 10), Named("k03", 50.2, 50.1)])
    assert [(point.name, point.x) for point in got] == [("k02, k03", 50), ("k09", 10)]


@given(st.floats(1e-3, 1e6), st.floats(1.01, 1e4), st.booleans(), st.integers(2, 8))
def test_a_scale_reaches_from_end_to_end_and_its_ticks_lie_within(low, factor, log, most):
    scale = Scale(low, low * factor, log=log)
    assert scale.at(scale.low) == pytest.approx(0, abs=1e-6) and scale.at(scale.high) == pytest.approx(100)
    assert all(-1e-6 <= scale.at(tick) <= 100 + 1e-6 for tick in scale.ticks(most))
    assert log or len(scale.ticks(most)) <= most + 1


# --- the command


def test_the_command_writes_the_packages_own_records_by_default(tmp_path):
    out = tmp_path / "page.html"
    done = RUNNER.invoke(app, ["report", "-o", str(out)], catch_exceptions=False)
    assert done.exit_code == 0 and done.stdout.startswith(f"{out}: ")
    page = Page(out.read_text(encoding="utf-8"))
    for path in RECORDS_DIR.rglob("*.json"):
        assert path.stem in page.words


def test_records_are_read_from_files_and_from_folders_with_what_lies_below(tmp_path):
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "b.json").write_text(json.dumps(made_up_tuning().to_json()), encoding="utf-8")
    single = tmp_path / "a.record"
    single.write_text(json.dumps(made_up_experiment().to_json()), encoding="utf-8")
    sources = read_sources([single, tmp_path])
    assert [source.name for source in sources] == ["a", "b"] and len({source.ident for source in sources}) == 2
    assert sources[0].record == made_up_experiment()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "name a file that can be read"),
        ("{", "not a record"),
        ("[]", "not a record"),
        ('{"schema": "other/9"}', "this version reads"),
        ('{"schema": "tilewright/1", "command": "x", "environment": {}, "rows": [{"nonsense": 1}]}', "not a record"),
    ],
)
def test_what_is_no_record_is_one_line_and_status_2(tmp_path, content, words):
    file = tmp_path / "page.json"
    if content is not None:
        file.write_text(content, encoding="utf-8")
    done = RUNNER.invoke(app, ["report", str(file), "-o", str(tmp_path / "out.html")], catch_exceptions=False)
    assert done.exit_code == 2 and words in done.stderr and str(file) in done.stderr
    assert not (tmp_path / "out.html").exists()


def test_a_folder_without_records_is_refused(tmp_path):
    done = RUNNER.invoke(app, ["report", str(tmp_path)], catch_exceptions=False)
    assert done.exit_code == 2 and "no .json file there" in done.stderr
