"""Counts that Nsight Compute took on a card, against what is predicted from the SASS of the very cubins it ran.

`scripts/ncu` writes the files. Its own reading of ncu's output is tested here too.
"""

import gzip
import importlib.machinery
import importlib.util
import json
from pathlib import Path

import pytest

from tilewright.compile.binary import Binary
from tilewright.declare import all_rungs, rung_config
from tilewright.errors import Missing
from tilewright.facts.disassemble import disassemble, nvdisasm
from tilewright.facts.footprint import warp_accesses
from tilewright.facts.predict import predicted
from tilewright.problem import Problem

GOLDEN = Path(__file__).parent / "golden"
ROOT = Path(__file__).parent.parent
FILES = [path for path in sorted(GOLDEN.glob("ncu-*.json")) if not path.stem.endswith("-patterns")]
RECORDS = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in FILES}
ROWS = [
    pytest.param(record, row, id=f"{stem} {row['rung']}") for stem, record in RECORDS.items() for row in record["rows"]
]
NONE_YET = [pytest.param(None, None, marks=pytest.mark.skip(reason="no counts recorded: scripts/ncu on a GPU"))]
each_row = pytest.mark.parametrize(("record", "row"), ROWS or NONE_YET)


def of(record, row):
    return rung_config(all_rungs().find(row["rung"]), row["config"]), Problem(**record["problem"])


def code_of(record, row):
    try:
        nvdisasm()
    except Missing as error:
        pytest.skip(str(error))
    payload = gzip.decompress((GOLDEN / row["cubin"]).read_bytes())
    return disassemble(Binary(row["entry"], record["environment"]["arch"], payload, "", ""))


@each_row
def test_counts_on_the_card_are_those_predicted_from_the_same_cubin(record, row):
    config, problem = of(record, row)
    ranges = predicted(code_of(record, row), config, problem, sm_count=record["environment"]["sm_count"])
    assert ranges, "nothing is predicted for this kernel"
    outside = {name: (count, row["counts"][name]) for name, count in ranges.items() if row["counts"][name] not in count}
    assert not outside


# Opcode, the counter of what it costs, the counter of how often it was asked for (asynchronous copies are requests
# of global loads, and no load instructions), and the footprint's figure.
REQUESTS = "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"
SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"
WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_"
PER_ACCESS = {
    "global load": ("LDG", SECTORS, REQUESTS, "sectors"),
    "shared load": ("LDS", f"{WAVEFRONTS}ld.sum", "smsp__inst_executed_op_shared_ld.sum", "wavefronts"),
    "shared store": ("STS", f"{WAVEFRONTS}st.sum", "smsp__inst_executed_op_shared_st.sum", "wavefronts"),
}


# The store pipe's counter also has the cycles in which a store gives way to data that comes back from global memory.
ARBITRATION = {"shared store": 1.15}


@each_row
@pytest.mark.parametrize("kind", PER_ACCESS)
def test_sectors_and_wavefronts_an_access_lie_among_the_declared_footprints(record, row, kind):
    config, problem = of(record, row)
    opcode, cost, asked, field = PER_ACCESS[kind]
    declared = [access for access in warp_accesses(config, problem) if access.kind == kind]
    issued = {i.width_bits for i in code_of(record, row) if i.opcode == opcode and not i.never_executes}
    if issued != {8 * access.lane_bytes for access in declared}:
        pytest.skip(f"{row['rung']}: the compiler merged or split what the footprints declare as {kind}s")
    if declared:
        costs = [getattr(access, field) for access in declared]
        assert min(costs) <= row["counts"][cost] / row["counts"][asked] <= max(costs) * ARBITRATION.get(kind, 1)


@pytest.fixture(scope="module")
def script():
    loader = importlib.machinery.SourceFileLoader("ncu_script", str(ROOT / "scripts" / "ncu"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("ncu_script", loader))
    loader.exec_module(module)
    return module


def output(script, launches: list[str], value: str = "1,024") -> str:
    """What ncu writes: its own lines, names, units, then a row a launch."""
    quoted = ['"ID","Kernel Name",' + ",".join(f'"{name}"' for name in script.COUNTED)]
    quoted.append('"","",' + ",".join('"inst"' for _ in script.COUNTED))
    quoted += [f'"{i}","{name}",' + ",".join(f'"{value}"' for _ in script.COUNTED) for i, name in enumerate(launches)]
    return "==PROF== Connected\n" + "\n".join(quoted) + "\n"


def test_ncus_rows_are_joined_to_the_launches_in_order(script):
    rows = [{"rung": "k01_a", "entry": "k01_a"}, {"rung": "k02_b", "entry": "k01_a"}]
    counted = script.read_counts(output(script, ["k01_a(GemmArgs)", "k01_a"]))
    joined = script.with_counts(rows, counted, script.COUNTED)
    assert [row["rung"] for row in joined] == ["k01_a", "k02_b"]
    assert all(set(row["counts"]) == set(script.COUNTED) and set(row["counts"].values()) == {1024} for row in joined)


def test_a_launch_that_was_not_ours_is_an_error(script):
    with pytest.raises(ValueError, match="ncu counted"):
        script.with_counts([{"entry": "k01_a"}], script.read_counts(output(script, ["memset", "k01_a"])), ())


def test_a_count_that_ncu_does_not_have_is_named(script):
    counted = script.read_counts(output(script, ["k01_a"], value="n/a"))
    with pytest.raises(ValueError, match=f"{script.COUNTED[0]}: ncu says 'n/a'"):
        script.with_counts([{"entry": "k01_a"}], counted, script.COUNTED)


def test_patterns_are_kept_one_a_line_with_their_counts_in_the_order_of_the_metrics(script):
    row = {"pattern": "stride 1", "entry": "shared_load", "offsets": [0, 4]}
    record = {
        "environment": {"arch": "sm_90a"},
        "metrics": ["x", "y"],
        "rows": 2 * [{**row, "counts": {"y": 2, "x": 1}}],
    }
    text = script.patterns_text(record)
    assert json.loads(text) == {**record, "rows": 2 * [{**row, "counts": [1, 2]}]}
    assert sum("stride 1" in line for line in text.splitlines()) == 2
