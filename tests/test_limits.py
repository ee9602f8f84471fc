"""Sizes near 2^31: each rung counts tiles and steps exactly, or refuses the product by a rule."""

import itertools
import random
from dataclasses import replace

import numpy as np
import pytest

from tilewright.arch import get_arch
from tilewright.compile.host import compile_host, host_source
from tilewright.compile.source import kernel_source
from tilewright.compile.variant import Variant
from tilewright.declare import COUNTED_K, Config, all_rungs, rung_config
from tilewright.errors import InvalidProblem
from tilewright.problem import MAX_SIZE, Problem
from tilewright.run.args import gemm_args
from tilewright.run.emulator import EmulatorBackend
from tilewright.run.protocol import Grid

INDICES = MAX_SIZE + 1
SM_COUNT = 132
RUNGS = pytest.mark.parametrize("rung", all_rungs().values(), ids=lambda rung: rung.name)
COUNTS_K_TO_ITS_END = ("k04", "k05", "k06", "k18", "t01", "t02", "t03")
"""Rungs whose loop has a counter that ends beyond k; the others count steps, or take whole ones alone."""
INDEXES_K_TO_ITS_END = ("k17", "t05", "t06", "t07", "t08")
"""Rungs that name elements of the last step beyond k, which a guard or TMA then leaves out."""


def near_the_limit(tile):
    """Sizes at the largest one and about the last multiples of `tile` below it."""
    last = MAX_SIZE // tile * tile
    around = (last - tile, last - tile + 1, last - 1, last, last + 1, MAX_SIZE - 8, MAX_SIZE - 7, MAX_SIZE)
    return sorted({size for size in around if 0 < size <= MAX_SIZE})


def configs_of(rung):
    """The default, and others that an H200 can run, tiles of no power of two among them."""
    draw, arch, found = random.Random(rung.number), get_arch("sm_90a"), [rung_config(rung)]
    values = {
        param.name: [*param.values, *(3 * v for v in param.values if 3 * v < param.highest)] for param in rung.params
    }
    for _ in range(5000):
        config = Config(rung, {name: draw.choice(each) for name, each in values.items()})
        if config.fits(arch) and config not in found:
            found.append(config)
        if len(found) == 6:
            break
    return found


def problems_near_the_limit(config):
    """One size near the limit, the others a tile or fewer, in the first and the last layout that the rung takes."""
    tile = dict(zip("mnk", config.tile, strict=True))
    for layout in dict.fromkeys((config.rung.requires.layouts[0], config.rung.requires.layouts[-1])):
        kind = {**config.rung.requires.usual._asdict(), "layout": layout}
        for size, small in itertools.product("mnk", (8, None)):
            others = {name: small or tile[name] for name in "mnk"}
            for value in near_the_limit(tile[size]):
                yield Problem(**{**others, size: value}, **kind)


def ceil_div(size, tile):
    return -(-size // tile)


def tiles_and_steps(config, problem):
    """Rows and columns of tiles, steps along k, and where the last tile and step end, in integers of any length."""
    scope = config.problem_scope(problem)
    (bm, bn, _), bk = config.tile, scope["TILE_K"] if "TILE_K" in scope else config.tile[2]
    if config.rung.name.startswith("k17"):
        bm, bn = (1, bn) if scope["IS_ROW"] else (bn, 1)
    if config.rung.name.startswith("k20"):
        bm, bn = (bm, bn) if scope["LARGE_IS_B"] else (bn, bm)
    rows, cols, steps = ceil_div(problem.m, bm), ceil_div(problem.n, bn), ceil_div(problem.k, bk)
    return rows, cols, steps, max(rows * bm, cols * bn), steps * bk


@RUNGS
def test_a_size_near_the_limit_has_its_exact_grid_or_is_refused_by_a_rule(rung):
    taken = 0
    for config in configs_of(rung):
        for problem in problems_near_the_limit(config):
            try:
                config.require_problem(problem)
                grid = config.grid(problem, sm_count=SM_COUNT)
            except InvalidProblem as refusal:
                assert any(words in str(refusal) for words in ("must hold", "at most", "multiple of"))
                continue
            taken += 1
            rows, cols, steps, reach, reach_k = tiles_and_steps(config, problem)
            split = config.constants.get("SPLIT_K", 1)
            if grid[1] == grid[2] == 1 and rung.launch.grid[0].text != "ceil_div(n, BN)":
                ctas = rows * cols * split
                most = config.constants.get("MIN_CTAS", 1) * SM_COUNT
                assert grid[0] == ctas or (rung.launch.persistent and grid[0] == min(ctas * max(steps, 1), most))
            else:
                assert sorted(grid) == sorted((rows, cols, 1))
            assert rows * cols * split <= MAX_SIZE
            assert rung.name.startswith("k17") or reach <= INDICES  # its outputs are guarded as what is left of them
            assert not rung.name.startswith(INDEXES_K_TO_ITS_END) or reach_k <= INDICES
            assert not rung.name.startswith(COUNTS_K_TO_ITS_END) or reach_k <= MAX_SIZE
            assert split == 1 or (split - 1) * ceil_div(steps, split) * config.tile[2] <= MAX_SIZE
    assert taken or any("* ldb <= " in rule.expr.text for rule in rung.rules)  # whose offsets inside a tile are 32-bit


@RUNGS
def test_more_results_than_can_be_counted_are_refused(rung):
    config = rung_config(rung)
    bm, bn, bk = config.tile
    most = {"m": MAX_SIZE // bm * bm, "n": MAX_SIZE // bn * bn, "k": bk, "batch": MAX_SIZE}
    problem = Problem(**most, **rung.requires.usual._asdict())
    with pytest.raises(InvalidProblem):
        config.require_problem(problem)
        config.grid(problem, sm_count=SM_COUNT)


@pytest.mark.parametrize("query", COUNTS_K_TO_ITS_END)
def test_a_counting_loop_takes_k_up_to_the_last_whole_step(query):
    config = rung_config(all_rungs().find(query))
    step, rule = config.tile[2], COUNTED_K
    assert rule in config.rung.rules
    for k, held in ((MAX_SIZE // step * step, True), (MAX_SIZE // step * step + 1, False), (MAX_SIZE, False)):
        problem = Problem(m=8, n=8, k=k, **config.rung.requires.usual._asdict())
        assert bool(rule.expr.evaluate(config.problem_scope(problem))) == held


def test_the_refusal_names_value_rule_and_reason():
    config = rung_config(all_rungs().find("k18"))
    words = r"k=2147483647, BK=16: ceil_div\(k, BK\) \* BK < 2147483648 must hold, since a loop counts k in 32 bits"
    with pytest.raises(InvalidProblem, match=words):
        config.require_problem(Problem(m=1, n=1, k=MAX_SIZE))


def test_the_short_wide_product_that_was_never_written_is_counted_right():
    """On an H200 it fits: 34 GB each of B and D."""
    problem = Problem(m=8, n=2**31 - 8, k=8, dtype="bfloat16", out_dtype="bfloat16")
    for query in ("t05", "t06", "t07", "t08"):
        config = rung_config(all_rungs().find(query))
        config.require_problem(problem)
        tiles = ceil_div(problem.n, config.tile[1])
        found = probed(config, problem, OUTPUT_TILES)
        assert list(found[:5]) == [1, tiles, tiles, 0, (tiles - 1) * config.tile[1]]


OUTPUT_TILES = """
#include "tilewright/output_tile.cuh"
PROBE {
  const int tiles = tiles_of(args);
  const OutputTile last(args, tiles - 1);
  const int found[] = {tile_rows_of(args), tile_cols_of(args), tiles, last.row, last.col, last.entry};
  if (threadIdx.x < 6) args.flags[threadIdx.x] = found[threadIdx.x];
}
"""
RASTER = """
#include "tilewright/output_tile.cuh"
#include "tilewright/raster.cuh"
PROBE {
  const int rows = tile_rows_of(args), cols = tile_cols_of(args);
  const TileIndex last = tile_at(rows * cols - 1, rows, cols);
  const int found[] = {last.row, last.col, last.entry};
  if (threadIdx.x < 3) args.flags[threadIdx.x] = found[threadIdx.x];
}
"""
SLICES = """
#include "tilewright/slices.cuh"
PROBE {
  const SliceSteps<SPLIT_K> steps(args, threadIdx.x % SPLIT_K);
  if (threadIdx.x < SPLIT_K) args.flags[2 * threadIdx.x] = steps.first, args.flags[2 * threadIdx.x + 1] = steps.count;
}
"""
STREAM = """
#include "tilewright/stream_k.cuh"
PROBE {
  __shared__ StreamPlan plan;
  if (threadIdx.x > 0) return;
  plan.make(args, 2 * BK);
  long long steps = 0;
  bool is_whole = true;
  for (StreamK work(plan); work.has_next();) {
    work.advance();
    steps += work.last - work.first;
    is_whole = is_whole && 0 <= work.first && work.first < work.last && work.last <= plan.steps;
  }
  args.flags[3 * blockIdx.x] = static_cast<unsigned>(steps >> 32);
  args.flags[3 * blockIdx.x + 1] = static_cast<unsigned>(steps);
  args.flags[3 * blockIdx.x + 2] = is_whole;
}
"""


def probed(config, problem, text, ctas=1):
    """The flags that `text` leaves in the place of the config's kernel, whose constants and argument it has."""
    entry = f'extern "C" __global__ void {config.rung.entry}(const __grid_constant__ GemmArgs args)'
    plain = Config(replace(config.rung, tensor_maps=()), config.values)
    source = kernel_source(plain, problem, Variant(text=text.replace("PROBE", entry)))
    with EmulatorBackend() as backend:
        flags = backend.alloc(4 * 1024, label="flags")
        args = gemm_args(problem, a=0, b=0, c=0, d=0, flags=flags.address)
        backend.launch(compile_host(host_source(source)), Grid((ctas, 1, 1), config.block), args)
        return backend.download(flags).view(np.int32)


SIZES = [(8, MAX_SIZE), (MAX_SIZE, 8), (8, 2**31 - 8), (1, 2**31 - 255), (2**31 - 257, 1), (4096, 4095)]


@pytest.mark.parametrize(("m", "n"), SIZES)
@pytest.mark.parametrize("batch", [1, 3])
def test_the_device_numbers_tiles_up_to_the_last(m, n, batch):
    config = rung_config(all_rungs().find("k13"))
    problem = Problem(m=m, n=n, k=1, batch=batch)
    rows, cols = ceil_div(m, config.tile[0]), ceil_div(n, config.tile[1])
    last = [(rows - 1) * config.tile[0], (cols - 1) * config.tile[1], batch - 1]
    assert list(probed(config, problem, OUTPUT_TILES)[:6]) == [rows, cols, rows * cols * batch, *last]


@pytest.mark.parametrize(("m", "n"), SIZES)
def test_the_raster_ends_with_the_last_tile(m, n):
    config = rung_config(all_rungs().find("t07"))
    problem = Problem(m=m, n=n, k=8, ldb=2**31, dtype="bfloat16", out_dtype="bfloat16")
    rows, cols = ceil_div(m, config.tile[0]), ceil_div(n, config.tile[1])
    assert list(probed(config, problem, RASTER)[:3]) == [rows - 1, cols - 1, 0]


@pytest.mark.parametrize("k", [0, 1, 2**31 - 9, 2**31 - 8, MAX_SIZE])
@pytest.mark.parametrize("slices", [1, 3, 16])
def test_slices_of_the_longest_k_are_all_of_it(k, slices):
    config = rung_config(all_rungs().find("k15"), {"SPLIT_K": slices})
    found = probed(config, Problem(m=8, n=8, k=k), SLICES)[: 2 * slices].reshape(slices, 2)
    steps = ceil_div(k, config.tile[2])
    assert found[:, 1].sum() == steps and (found >= 0).all()
    assert list(found[:, 0]) == [min(i * ceil_div(steps, slices), steps) for i in range(slices)]


@pytest.mark.parametrize(("m", "n", "k"), [(300, 300, MAX_SIZE), (8, MAX_SIZE, 1), (8, 2**31 - 8, 40), (200, 600, 0)])
def test_stream_k_deals_out_every_step_once(m, n, k):
    config, ctas = rung_config(all_rungs().find("k19")), 5
    found = probed(config, Problem(m=m, n=n, k=k), STREAM, ctas)[: 3 * ctas].reshape(ctas, 3)
    tiles, steps = ceil_div(m, config.tile[0]) * ceil_div(n, config.tile[1]), ceil_div(k, 2 * config.tile[2])
    assert sum((int(high) << 32) + int(np.uint32(low)) for high, low, _ in found) == tiles * steps
    assert steps == 0 or found[:, 2].all()
