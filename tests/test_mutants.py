"""Every mutant of a rung is caught or is right for a stated reason, and the rungs themselves raise no alarm.

The suite judges some of the mutants, of those that order more than of the others; `scripts/test -m slow` judges all.
"""

from __future__ import annotations

import itertools
import zlib
from pathlib import Path

import pytest

from mutants import asynchrony, order, score
from mutants.judge import all_catches, by_checks, cases, first_catch, rolled_by
from mutants.operators import mutants
from mutants.subjects import subjects, with_headers
from tilewright.compile.traced import compile_traced
from tilewright.declare import all_rungs, rung_config
from tilewright.emulator.tracing import Watch
from tilewright.lab.races_command import distinct_problems
from tilewright.lab.tracing import declared_matrices, trace_config
from tilewright.lab.verifying import COMPLETIONS, SCHEDULES, emulator_settings, sweep
from tilewright.run.tracing import TracingBackend
from tilewright.verify.device import DeviceRuns
from tilewright.verify.layers import check_case

ROOT = Path(__file__).parent.parent
ORDERING = (*asynchrony.OPERATORS, "removed", "weakened")
ONE_IN = {True: 8, False: 60}
"""The suite judges one in so many mutants, by a hash of what they are: of those of ORDERING, and of the others."""
EVERY = [(subject, mutant) for subject in subjects().values() for mutant in subject.mutants]


def in_suite(subject, mutant):
    return zlib.crc32(repr((subject.name, mutant.key)).encode()) % ONE_IN[mutant.operator in ORDERING] == 0


def is_listed(subject, mutant):
    return (subject.name, mutant.key) in score.reasons()


def parameters(pairs):
    return [
        pytest.param(*pair, id=f"{pair[0].name}:{pair[1].line} {pair[1].operator}: {pair[1].words}") for pair in pairs
    ]


CAUGHT = [pair for pair in EVERY if not is_listed(*pair)]
RIGHT = [pair for pair in EVERY if is_listed(*pair)]


@pytest.mark.parametrize(("subject", "mutant"), parameters(pair for pair in CAUGHT if in_suite(*pair)))
def test_a_mutant_is_caught(subject, mutant):
    assert first_catch(subject, mutant, checks_first=mutant.operator in order.OPERATORS)


@pytest.mark.parametrize(("subject", "mutant"), parameters(pair for pair in RIGHT if in_suite(*pair)))
def test_a_survivor_that_is_listed_has_no_finding(subject, mutant):
    assert by_checks(next(subject.configs(mutant.source))) is None


@pytest.mark.slow
@pytest.mark.parametrize(("subject", "mutant"), parameters(pair for pair in CAUGHT if not in_suite(*pair)))
def test_each_other_mutant_is_caught(subject, mutant):
    assert first_catch(subject, mutant, checks_first=False)


@pytest.mark.slow
@pytest.mark.parametrize(("subject", "mutant"), parameters(RIGHT))
def test_a_survivor_passes_everything_there_is(subject, mutant):
    assert all_catches(subject, mutant) == (None, None)
    config = next(subject.configs(mutant.source))
    assert all(check.ok for setting in emulator_settings("all", 1) for check in sweep(config, setting))
    for problem, schedule in itertools.product(distinct_problems(config), SCHEDULES):
        watch = Watch(counts=False, checks=True, matrices=declared_matrices(problem))
        trace, failure = trace_config(config, problem, watch, schedule=schedule)
        assert not trace.findings and failure is None


def test_every_reason_belongs_to_a_mutant():
    there = {(subject.name, mutant.key) for subject, mutant in EVERY}
    assert not score.reasons().keys() - there


def test_the_document_is_the_score_of_the_mutants_there_are():
    scored = score.load()
    assert scored.keys() == subjects().keys(), "run scripts/mutants"
    assert (ROOT / "docs" / "mutants.md").read_text(encoding="utf-8") == score.document(scored)
    survivors = {(one.subject, one.mutant.key) for each in scored.values() for one in each if one.means == "nothing"}
    assert survivors == score.reasons().keys()


FEWER_CTAS = {"k17_matrix_vector": {"SPLIT_K": 2}}
"""Settings of a rung whose default needs many for a problem that is no vector."""


def settings_of_20_schedules():
    """Default and reverse with each completion, and 14 seeds."""
    fixed = [(schedule, 0, completion) for schedule in ("default", "reverse") for completion in COMPLETIONS]
    return [*fixed, *(("random", seed, COMPLETIONS[seed % 3]) for seed in range(14))]


@pytest.mark.parametrize("rung", all_rungs().values(), ids=lambda rung: rung.name)
def test_the_rung_itself_is_right_and_has_no_finding_under_20_schedules(rung):
    config = rung_config(with_headers(rung), FEWER_CTAS.get(rung.name))
    settings = settings_of_20_schedules()
    assert len(settings) == 20
    batch, largest = cases(config)[0], max(cases(config), key=lambda case: case.operands.problem.flops)
    for (schedule, seed, completion), case in zip(settings, itertools.cycle((batch, largest))):
        watch = Watch(counts=False, checks=True, matrices=declared_matrices(case.operands.problem))
        with TracingBackend(watch, schedule=schedule, seed=seed, async_completion=completion) as backend:
            run = DeviceRuns(backend).of(config, compiled=rolled_by(compile_traced), sm_count=1)
            outcome = check_case(run, case)
            assert outcome.ok, f"{outcome} ({schedule}, seed {seed}, {completion})"
            assert not backend.traces[0].findings, f"{schedule}, seed {seed}, {completion}"


LOOP = """\
extern "C" __global__ void f(const __grid_constant__ GemmArgs args) {
  __shared__ float As[BM][BK];
  for (int k0 = 0; k0 < args.k; k0 += BK) {
    const bool more = k0 + BK < args.k;
    As[threadIdx.y][threadIdx.x] = more ? args.a[k0 * args.lda] : 0;
    __syncthreads();  // orders
#pragma unroll
    for (int k = 0; k < BK; ++k) use(As[k][threadIdx.x]);
  }
}
"""


def test_the_operators_find_their_places_in_a_text_they_have_not_seen():
    made = [(m.operator, m.line, m.words) for m in mutants(LOOP, {"BM": 8, "BK": 4})]
    for expected in (
        ("removed", 6, "gone"),
        ("moved up", 6, "before `As[threadIdx.y][threadIdx.x] = more ? args.a[k0 * args.lda] : 0;`"),
        ("moved up", 6, "before `for (int k0 = 0; k0 < args.k; k0 += BK) {`"),
        ("moved down", 6, "after `for (int k = 0; k < BK; ++k) use(As[k][threadIdx.x]);`"),
        ("guard removed", 4, "`k0 + BK < args.k` is true"),
        ("guard off by one", 4, "`<` is `<=`"),
        ("loop", 3, "`k0` a step less"),
        ("term removed", 4, "`+ BK` gone"),
        ("factor removed", 5, "`* args.lda` gone"),
        ("subscripts swapped", 8, "`As[k][threadIdx.x]` is `As[threadIdx.x][k]`"),
        ("name swapped", 5, "`threadIdx.y` is `threadIdx.x`"),
    ):
        assert expected in made


RING = """\
extern "C" __global__ void f(const __grid_constant__ TmaArgs args) {
  for (int tile = 0; tile < tiles; ++tile) {
    mbarrier_wait(&full[tile % STAGES], parity ^ 1);
    if (leads) mbarrier_arrive_expect_tx(&empty[tile % STAGES], Stage::bytes);
    tma_load(As, &args.map_a, &empty[0], 0, k, entry);
    release_registers<24>();
    wgmma_fence();
    const auto a = smem_descriptor(As, 16, 8 * span, span);
    wgmma<BN, Scalar, false, true>(sums, a, b, tile > 0);
    wgmma_wait<STAGES - 1>();
  }
  fence_proxy_async();
}
"""


def test_the_operators_on_asynchrony_find_theirs():
    made = [(m.operator, m.line, m.words) for m in mutants(RING, {"BN": 64, "STAGES": 4})]
    for expected in (
        ("removed", 7, "gone"),
        ("removed", 12, "gone"),
        ("weakened", 10, "leaves STAGES - 1 + 1"),
        ("copy removed", 5, "gone"),
        ("arrival doubled", 4, "twice"),
        ("parity flipped", 3, "the other parity"),
        ("bytes changed", 4, "bytes - 16"),
        ("ring changed", 3, "`STAGES` is `(STAGES - 1)`"),
        ("tile off by one", 4, "`tile` is `(tile + 1)`"),
        ("swizzle changed", 3, "`^` is `|`"),
        ("descriptor changed", 8, "argument 2 / 2"),
        ("accumulation changed", 9, "accumulates: true"),
        ("registers changed", 6, "registers + 8"),
        ("choice flipped", 9, "`true` is `false`"),
    ):
        assert expected in made


def test_a_mutant_differs_from_the_text_and_from_every_other():
    for subject in subjects().values():
        texts = [mutant.source for mutant in subject.mutants]
        assert subject.text not in texts and len(set(texts)) == len(texts)
        assert len({mutant.key for mutant in subject.mutants}) == len(texts)
