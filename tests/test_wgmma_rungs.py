"""The wgmma rungs in the emulator: TF32 within its bound; and, slow, the whole product of what a problem may be."""

from itertools import product

import pytest

from tilewright.declare import all_rungs, rung_config
from tilewright.lab.verifying import emulator_run
from tilewright.problem import Problem, ProblemKind
from tilewright.run.emulator import EmulatorBackend
from tilewright.verify import verify
from tilewright.verify.layers import check_case, make_case
from tilewright.verify.operands import make_operands

RUNGS = [rung for rung in all_rungs().values() if "wgmma" in rung.requires.features]
SETTINGS = (("default", "latest"), ("reverse", "earliest"), ("random", "random"))


def kinds(rung):
    requires = rung.requires
    yield from map(ProblemKind._make, product(requires.layouts, requires.dtypes, requires.out_dtypes))
    yield from requires.also


def padded(m, n, k, kind, **other):
    """A product whose stored rows are padded to multiples of 16 bytes, but D's, which are as wide as it is."""
    unpadded = Problem(m=m, n=n, k=k, **kind._asdict())
    widths = {name: unpadded.stored_shape(name)[1] for name in "ab"}
    return Problem(
        m=m, n=n, k=k, **{f"ld{x}": -(-width // 8) * 8 for x, width in widths.items()}, **kind._asdict(), **other
    )


@pytest.mark.parametrize("query", ["t05", "t08"])
def test_a_tf32_product_is_within_its_bound(query):
    kind = ProblemKind("NT", "tfloat32", "float32")
    with EmulatorBackend(schedule="reverse") as backend:
        run = emulator_run(rung_config(all_rungs().find(query)), backend)
        verify(run, [padded(130, 70, 77, kind)], layers=("integer", "bound")).raise_if_wrong()


@pytest.mark.slow
@pytest.mark.parametrize("setting", SETTINGS, ids=" ".join)
@pytest.mark.parametrize("rung", RUNGS, ids=lambda r: r.name)
def test_every_kind_and_every_edge_is_exact_under_every_schedule(rung, setting):
    config = rung_config(rung)
    (rows, cols, depth), (schedule, completion) = config.tile, setting
    edges = [(rows + i, cols + j) for i, j in ((-1, 1), (1, -1), (0, 8))]
    depths = [max(1, stage * depth + off) for stage in range(config.stages + 2) for off in (-1, 0, 1)]
    wrong = []
    with EmulatorBackend(schedule=schedule, async_completion=completion, seed=1) as backend:
        for kind, (m, n), k in product(kinds(rung), edges, depths):
            problem = padded(m, n, k, kind, beta=float(k % 3 == 0))
            case = make_case("integer", make_operands(problem, "integer", seed=k))
            if not (outcome := check_case(emulator_run(config, backend), case)).ok:
                wrong.append(str(outcome))
    assert not wrong
