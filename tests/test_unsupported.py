"""What a card without wgmma or TMA is told of rungs that are made of them."""

import io
from dataclasses import replace

import pytest
from rich.console import Console

from tilewright.arch import ARCHS, archs_with, get_arch
from tilewright.declare import all_rungs, rung_config
from tilewright.declare.registry import Registry
from tilewright.errors import Unsupported
from tilewright.lab import inspect_table, ladder_command, listing
from tilewright.lab.ladder_command import LadderRequest, run_ladder
from tilewright.lab.listing import described, show_rungs
from tilewright.problem import Problem

T01 = all_rungs().find("t01")
HOPPERS = replace(T01, requires=replace(T01.requires, features=frozenset({"mma_sync", "tma", "wgmma"})))
LACKS = "needs tma, wgmma, which sm_89 lacks; sm_90a can run it"


@pytest.fixture
def hoppers_alone(monkeypatch):
    """A registry of one rung, which only Hopper can run."""
    for module in (ladder_command, listing, inspect_table):
        monkeypatch.setattr(module, "all_rungs", lambda: Registry({HOPPERS.name: HOPPERS}))


def asked(*rungs: str) -> LadderRequest:
    return LadderRequest(64, 64, 64, list(rungs), [], "sm_89", "emulator", 0, 1, 1.0, dtype="bfloat16")


def test_features_that_an_architecture_lacks_are_named_with_those_that_have_them():
    with pytest.raises(Unsupported, match=LACKS):
        rung_config(HOPPERS).require_arch(get_arch("sm_89"))
    rung_config(HOPPERS).require_arch(get_arch("sm_90a"))
    assert archs_with(frozenset({"mma_sync", "cp_async", "ldmatrix"})) == list(ARCHS)
    assert archs_with(frozenset({"tma", "setmaxnreg"})) == ["sm_90a", "sm_100a", "sm_103a", "sm_120a"]
    assert archs_with(frozenset({"wgmma", "tcgen05"})) == []


def test_a_ladder_lists_such_a_rung_with_the_reason_and_does_not_fail(hoppers_alone, capsys):
    assert run_ladder(asked(), as_json=False) == 0
    told = capsys.readouterr().out
    assert "– skipped" in told and LACKS in told
    assert "sm_89 cannot run t01_wmma; nothing asked for can serve it" in told


def test_such_a_rung_asked_for_by_name_is_refused(hoppers_alone, capsys):
    assert run_ladder(asked("t01"), as_json=True) == 2
    assert '"failure": "Unsupported"' in capsys.readouterr().out


def test_the_list_of_rungs_says_where_they_run(hoppers_alone, capsys):
    assert show_rungs(None, as_json=False) == 0
    assert "needs tma, wgmma: for sm_90a alone" in capsys.readouterr().out
    assert described(HOPPERS)["archs"] == ["sm_90a"] and described(T01)["archs"] == list(ARCHS)


def test_the_table_of_architectures_says_it_once(hoppers_alone):
    archs = [get_arch("sm_80"), get_arch("sm_89")]
    problem = Problem(m=64, n=64, k=64, dtype="bfloat16", out_dtype="bfloat16", layout="NT")
    console = Console(file=io.StringIO(), width=120)
    inspect_table.print_table(console, inspect_table.table_rows([rung_config(HOPPERS)], archs, [problem]), archs, "64³")
    assert console.file.getvalue().count("– t01_wmma: for sm_90a alone") == 1
