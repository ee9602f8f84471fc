"""Two rungs, or two settings of one, compared: in the terminal, as JSON, as one page."""

from __future__ import annotations

import dataclasses
import json
import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from tilewright.arch import get_arch
from tilewright.cli import app
from tilewright.declare import all_rungs, rung_config
from tilewright.errors import Missing
from tilewright.lab.diff_command import show
from tilewright.lab.diffing import compare, compared
from tilewright.lab.source_diff import hunks, tokens
from tilewright.problem import Problem
from tilewright.record import Record, Row
from tilewright.report.diff_page import diff_page

RUNNER = CliRunner()
PROBLEM = Problem(m=4096, n=4096, k=4096)
VOID = {"meta", "br", "hr", "img", "input", "link"}
texts = st.lists(st.text(alphabet="ab <&>\"'/*+1x(){}; ", max_size=12), max_size=12).map("\n".join)


def call(*args: str):
    return RUNNER.invoke(app, ["diff", *args], catch_exceptions=False)


class Page(HTMLParser):
    """Reads a page; fails on tags that don't match. `shown` has the text of each <code>, by column."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[tuple[str, str]] = []
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str | None]] = []
        self.shown: dict[str, list[str]] = {"old": [], "new": []}
        self.words: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append((tag, dict(attrs).get("class") or ""))
        if tag == "code":
            self.shown[self.column()].append("")

    def handle_endtag(self, tag):
        assert self.open.pop()[0] == tag

    def handle_data(self, data):
        self.words.append(data)
        if any(tag == "code" for tag, _ in self.open):
            self.shown[self.column()][-1] += data

    def column(self) -> str:
        return next(kind for _, kind in reversed(self.open) if kind in self.shown)


# --- texts


@given(texts, texts)
def test_the_hunks_of_two_texts_are_both_texts_in_order(left, right):
    found = hunks(left, right)
    for text, side, start in ((left, "left", "left_start"), (right, "right", "right_start")):
        lines = ["".join(token.text for token in line) for hunk in found for line in getattr(hunk, side)]
        assert lines == text.splitlines()
        at = 1
        for hunk in found:
            assert getattr(hunk, start) == at
            at += len(getattr(hunk, side))
    assert all(hunk.same == (hunk.left == hunk.right) for hunk in found)


@pytest.mark.parametrize("rung", all_rungs().values(), ids=lambda r: r.name)
def test_the_tokens_of_every_line_are_the_line(rung):
    for line in rung.source.splitlines():
        assert "".join(token.text for token in tokens(line)) == line


def test_tokens_have_the_kinds_that_colours_go_by():
    kinds = {token.text: token.kind for token in tokens('#pragma unroll for (int i = 0x10; "a // b") // c "d"')}
    assert kinds["#pragma"] == "directive" and kinds["for"] == kinds["int"] == "keyword"
    assert kinds["0x10"] == "number" and kinds['"a // b"'] == "string" and kinds['// c "d"'] == "comment"
    assert kinds["unroll"] == kinds["i"] == "other"


def test_only_what_differs_in_a_line_is_marked():
    (hunk,) = hunks("const int row = blockIdx.x * BM;", "const int row = blockIdx.y * BM;")
    assert [token.text for token in hunk.left[0] if token.changed] == ["x"]
    assert [token.text for token in hunk.right[0] if token.changed] == ["y"]
    (other,) = hunks("const int row = 1;", "#pragma unroll 2")
    assert not any(token.changed for token in (*other.left[0], *other.right[0]))


# --- the terminal


@pytest.mark.parametrize("columns", ["80", "140"])
def test_neighbours_on_the_ladder_show_the_lines_that_changed(monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", columns)
    done = call("k01", "k02")
    assert done.exit_code == 0, done.output
    removed = re.findall(r"^ +\d+ +- (.*)$", done.stdout, re.MULTILINE)
    added = re.findall(r"^ +\d+ \+ (.*)$", done.stdout, re.MULTILINE)
    assert "  const int row = blockIdx.x * BM + threadIdx.x;" in removed
    assert "  const int row = blockIdx.y * BM + threadIdx.y;" in added
    assert all(line in all_rungs().find("k01").source.splitlines() for line in removed)
    assert all(line in all_rungs().find("k02").source.splitlines() for line in added)
    assert "⋯ 9 lines the same" in done.stdout


def fact(comparison, group: str, name: str):
    facts = next(g.facts for g in comparison.groups if g.title == group)
    return next((f.left, f.right, f.factor) for f in facts if f.name == name)


def test_facts_of_two_rungs_are_the_declarations_and_the_binaries():
    got = compare("k04", "k08", [], "sm_90a", (None, None, None))
    assert fact(got, "parameters", "BM") == ("32", "128", "×4")
    assert fact(got, "parameters", "WMITER") == ("–", "2", "")
    assert fact(got, "launch", "CTAs") == ("16384", "2048", "×0.125")
    assert fact(got, "accesses", "shared loads a result") == ("8192", "1024", "×0.125")
    assert fact(got, "accesses", "FLOP a global byte")[:2] == ("8", "21.3")
    assert fact(got, "resources", "shared bytes a CTA")[:2] == ("8192", "12288")
    assert fact(got, "resources", "registers a thread")[0] == str(got.left.row.registers)


def test_two_settings_of_one_rung_differ_in_parameters_only():
    done = call("k08", "--set", "A.BK=8", "--set", "B.BK=32")
    assert done.exit_code == 0 and "one text for both" in done.stdout
    assert re.search(r"BK +8 +32 +×4", done.stdout)
    assert "no record has both" in done.stdout


def test_a_rungs_name_says_which_side_a_setting_is_for():
    got = compare("k02", "k08", ["k08.BK=8", "A.BM=16"], "sm_90a", (None, None, None))
    assert (got.left.config.values["BM"], got.right.config.values["BM"]) == (16, 128)
    assert got.right.config.values["BK"] == 8


def test_json_is_the_two_rows(monkeypatch):
    record = json.loads(call("k02", "k08", "--arch", "sm_120a", "--json").stdout)
    assert record["command"] == "diff" and record["environment"]["arch"] == "sm_120a"
    assert [row["rung"] for row in record["rows"]] == ["k02_coalesced", "k08_warp_tile"]


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["k08"], "A and B are both k08_warp_tile"),
        (["k08", "k8x"], "rung 'k8x': no such rung"),
        (["k08", "--set", "BK=8"], "A.BK=8 for the first or B.BK=8 for the second"),
        (["k08", "--set", "k08.BK=8"], "A.BK=8 for the first or B.BK=8 for the second"),
        (["k02", "k04", "--set", "k08.BK=8"], "must say which side is meant"),
        (["k08", "--set", ".BK=8"], "must be NAME=INTEGER"),
        (["k08", "--set", "B.WM=48"], "BM % WM == 0 must hold"),
        (["k02", "k08", "-m", "130"], "m % BM == 0"),
        (["k01", "k02", "--html", "/dev/null/page.html"], "name a file in a folder that can be written"),
    ],
)
def test_what_cannot_be_compared_is_one_line_and_status_2(args, words):
    done = call(*args)
    assert done.exit_code == 2, done.output
    assert words in done.stderr and done.stdout == ""


# --- recorded times and instructions, where there are any


def timed(rung: str, time_us: float, device: str, size: int, date: str = "2026-01-01", **config: int) -> Record:
    chosen = rung_config(all_rungs().find(rung), config)
    problem = {"m": size, "n": size, "k": size, "layout": "NN", "dtype": "float32", "alpha": 1.0, "beta": 0.0}
    row = Row(rung=chosen.rung.name, problem=problem, config=chosen.values, time_us=time_us, verified=True)
    return Record(command="ladder", environment={"date": date, "device": {"name": device}}, rows=[row])


def recorded(*records: Record):
    left, right = (rung_config(all_rungs().find(name)) for name in ("k02", "k08"))
    got = compared(left, right, PROBLEM, get_arch("sm_90a"), records)
    return {f.name: (f.left, f.right, f.factor) for g in got.groups if g.title == "recorded times" for f in g.facts}


def test_recorded_times_are_paired_by_device_size_and_config():
    both = (timed("k02", 400.0, "NVIDIA X", 1024), timed("k08", 100.0, "NVIDIA X", 1024))
    assert recorded(*both) == {"X, 1024³": ("400 µs", "100 µs", "×0.25")}
    assert recorded(both[0], timed("k08", 100.0, "NVIDIA Y", 1024)) == {}
    assert recorded(both[0], timed("k08", 100.0, "NVIDIA X", 4096)) == {}
    assert recorded(both[0], timed("k08", 100.0, "NVIDIA X", 1024, BK=8)) == {}
    newer = timed("k08", 80.0, "NVIDIA X", 1024, date="2026-02-01")
    assert recorded(newer, *both) == {"X, 1024³": ("400 µs", "80 µs", "×0.2")}


def test_instruction_counts_of_both_main_loops_stand_side_by_side(capsys):
    got = compare("k08", "k10", [], "sm_90a", (None, None, None))
    show(got, as_json=False)
    shown = capsys.readouterr().out
    assert "one K-tile of 16" in shown and re.search(r"FFMA +1024 +1024", shown)
    assert fact(got, "instructions of the main loop", "LDS.64") == ("0", "32", "")
    assert "LDS.64" in Page(diff_page(got)).words


def test_without_a_disassembler_the_absence_is_said(monkeypatch, capsys):
    def missing(*_):
        raise Missing("no nvdisasm: pip install 'tilewright[sass]'")

    monkeypatch.setattr("tilewright.lab.inspecting.disassemble", missing)
    show(compare("k08", "k10", [], "sm_90a", (None, None, None)), as_json=False)
    assert "pip install 'tilewright[sass]'" in capsys.readouterr().out


# --- the page


@pytest.mark.parametrize("pair", [("k01", "k02"), ("k04", "k08")], ids="-".join)
def test_the_page_is_well_formed_and_holds_both_texts_whole(tmp_path, pair):
    file = tmp_path / "page.html"
    assert call(*pair, "--html", str(file)).exit_code == 0
    page = Page(file.read_text(encoding="utf-8"))
    for name, column in zip(pair, ("old", "new"), strict=True):
        assert page.shown[column] == all_rungs().find(name).source.splitlines()
        assert all_rungs().find(name).summary in page.words


def test_the_page_needs_nothing_outside_itself():
    text = diff_page(compare("k04", "k08", [], "sm_90a", (None, None, None)))
    page = Page(text)
    assert not {"script", "link", "img", "iframe"} & page.tags
    assert not {name for name, _ in page.attributes} & {"src", "href", "onclick"}
    assert "url(" not in text and "@import" not in text and "prefers-color-scheme: dark" in text


def test_what_stands_in_a_text_is_never_markup():
    left, right = (rung_config(all_rungs().find(name)) for name in ("k01", "k02"))
    hostile = '</code></div><script>alert("&lt;")</script> <b title=\'"\'>'
    evil = dataclasses.replace(right.rung, source=f"// {hostile}\nint x;\n", summary=hostile)
    comparison = compared(left, right, PROBLEM, get_arch("sm_90a"), [])
    side = dataclasses.replace(comparison.right, config=dataclasses.replace(right, rung=evil))
    page = Page(
        diff_page(
            dataclasses.replace(
                comparison, right=side, hunks=tuple(hunks(comparison.left.config.rung.source, evil.source))
            )
        )
    )
    assert "script" not in page.tags
    assert page.shown["new"] == [f"// {hostile}", "int x;"]
    assert hostile in page.words
