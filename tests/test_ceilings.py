"""A card's ceilings: kernels in the emulator against NumPy, what is left of them in SASS, rates from a fake timer."""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import json
import re
import subprocess
from types import SimpleNamespace

import numpy as np
import pytest
from typer.testing import CliRunner

from tilewright.arch import ARCHS, get_arch
from tilewright.cli import app
from tilewright.compile.host import compile_host, host_source
from tilewright.compile.nvrtc import compile_cubin
from tilewright.errors import InvalidInput, NoDevice, WrongResult
from tilewright.facts.disassemble import disassemble
from tilewright.facts.static import resources_of
from tilewright.lab import ceilings as lab_ceilings
from tilewright.lab.ceilings_command import ceiling_lines
from tilewright.lab.render import INSTRUCTIONS
from tilewright.measure import ClockReading
from tilewright.measure.ceilings import work as work_module
from tilewright.measure.ceilings.check import allocate, check
from tilewright.measure.ceilings.kernels import ARGS_TYPE, CEILINGS, FOLDER, CeilingArgs
from tilewright.measure.ceilings.products import operands
from tilewright.measure.ceilings.work import PRODUCT_ROUNDS, Card, Clocks, Work, array_bytes, theoretical, works
from tilewright.record import Record, Row, ceiling, compute_ceiling
from tilewright.report.tables import ceilings_table, ladder_tables
from tilewright.run.emulator import EmulatorBackend

SM_90A = get_arch("sm_90a")
H200 = Card(SM_90A, sm_count=132, l2_bytes=60 << 20, array_bytes=8 << 30, memory_bus_bits=6144)
BY_NAME = {each.name: each for each in CEILINGS}
TINY_L2_BYTES, TINY_ARRAY_BYTES = 48_000, 1 << 20
SM_89 = get_arch("sm_89")
PRODUCTS = [each for each in CEILINGS if each.product is not None]
ON_ARCHS = [(each, arch) for each in CEILINGS for arch in ARCHS.values() if each.features <= arch.features]


@pytest.fixture
def tiny(monkeypatch) -> Card:
    """A card of one SM without wgmma, and launches short enough for the emulator.

    The L2's array isn't a multiple of the threads.
    """
    monkeypatch.setattr(work_module, "FMA_ROUNDS", 64)
    monkeypatch.setattr(work_module, "PRODUCT_ROUNDS", 2)
    monkeypatch.setattr(work_module, "SHARED_ROUNDS", 7)
    monkeypatch.setattr(work_module, "L2_SWEEPS", 9)
    return Card(SM_89, 1, TINY_L2_BYTES, TINY_ARRAY_BYTES, memory_bus_bits=1024)


@pytest.fixture
def tiny_hopper(tiny) -> Card:
    """The same with wgmma."""
    return dataclasses.replace(tiny, arch=SM_90A)


def on_host(work: Work, *, text: str = "", instead: str = "") -> Work:
    source = work.ceiling.source
    assert text in source.text
    source = dataclasses.replace(source, text=source.text.replace(text, instead) if text else source.text)
    return dataclasses.replace(work, binary=compile_host(host_source(source, args_type=ARGS_TYPE)))


@pytest.mark.parametrize(("each", "arch"), ON_ARCHS, ids=lambda x: x.name)
def test_every_kernel_compiles_without_warnings_or_spills(each, arch):
    binary = compile_cubin(each.source, arch)
    found = resources_of(binary)
    assert "warning" not in binary.log
    assert (found.spill_bytes, found.stack_bytes) == (0, 0)


@pytest.mark.parametrize("arch", ARCHS.values(), ids=lambda a: a.name)
def test_launches_fill_any_card_once_and_sweep_whole_arrays(arch):
    card = dataclasses.replace(H200, arch=arch, sm_count=82)
    dram = [work for work in works(card) if work.ceiling.limit == "dram"]
    assert len({work.count for work in dram}) == 1
    for work in works(card):
        assert (work.flop > 0) != (work.moved_bytes > 0)
        if work.ceiling.kernel != "global_copy":
            assert work.threads <= card.sm_count * arch.max_threads_per_sm and work.repeats % 4 == 0
    assert all(work.count == work.threads * work.repeats for work in dram)
    assert 0.9 * card.array_bytes < dram[0].count * 16 <= card.array_bytes


@pytest.mark.parametrize(
    ("name", "opcode", "least"),
    [
        ("ceiling_ffma", r"FFMA R\d+, R\d+\.reuse, R\d+\.reuse, R\d+", 500),
        ("ceiling_ffma_no_reuse", r"FFMA R\d+, R\d+, R\d+, R\d+", 512),
        ("ceiling_wmma", r"HMMA\.16816\.F32\.BF16", 32),
        ("ceiling_mma_sync", r"HMMA\.16816\.F32\.BF16", 32),
        ("ceiling_wgmma", r"HGMMA\.64x256x16\.F32\.BF16", 4),
        ("ceiling_wgmma_tf32", r"HGMMA\.64x256x8\.F32\.TF32", 4),
        ("ceiling_shared_read", r"LDS\.128", 8),
        ("ceiling_l2_read", r"LDG\.E\.128\.STRONG\.GPU", 4),
        ("ceiling_dram_read", r"LDG\.E\.128\.STRONG\.GPU", 4),
        ("ceiling_dram_write", r"STG\.E\.128", 4),
    ],
)
def test_the_optimiser_leaves_the_work_in_the_loop(name, opcode, least, tmp_path):
    pathfinder = pytest.importorskip("cuda.pathfinder")
    nvdisasm = pathfinder.find_nvidia_binary_utility("nvdisasm")
    if nvdisasm is None:
        pytest.skip("needs nvdisasm: pip install 'tilewright[sass]'")
    path = tmp_path / "kernel.cubin"
    path.write_bytes(compile_cubin(BY_NAME[name].source, SM_90A).payload)
    sass = subprocess.run([nvdisasm, "-c", str(path)], capture_output=True, text=True, check=True).stdout
    labels = {m[1]: m.start() for m in re.finditer(r"^(\.L_x_\d+):", sass, re.MULTILINE)}
    branches = [(m[1], m.start()) for m in re.finditer(r"@!?P\d BRA `\((\.L_x_\d+)\)", sass)]
    loops = [sass[labels[to] : at] for to, at in branches if labels[to] < at]
    assert max(len(re.findall(opcode, loop)) for loop in loops) >= least


def test_the_copy_moves_16_bytes_a_thread_without_a_loop():
    code = disassemble(compile_cubin(BY_NAME["ceiling_dram_copy"].source, SM_90A))
    assert [i.width_bits for i in code if i.opcode == "LDG"] == [128]
    assert [i.width_bits for i in code if i.opcode == "STG"] == [128]


@pytest.mark.parametrize("schedule", ["default", "reverse", "random"])
def test_every_kernel_does_its_work_in_the_emulator(tiny_hopper, schedule):
    todo = [on_host(work) for work in works(tiny_hopper)]
    with EmulatorBackend(schedule=schedule) as emulator:
        check(emulator, todo, allocate(emulator, todo))


@pytest.mark.parametrize(
    ("name", "text", "instead"),
    [
        ("ceiling_ffma", "done += STEPS", "done += 2 * STEPS"),
        ("ceiling_ffma_no_reuse", "b[i % PAIRS]", "b[0]"),
        ("ceiling_wmma", "a[step], b", "a[step / 2], b"),
        ("ceiling_wmma", "done < args.repeats", "done + 1 < args.repeats"),
        ("ceiling_mma_sync", "b[chain][step / 2]", "b[0][step / 2]"),
        (
            "ceiling_mma_sync",
            "step < STEPS_K; ++step) {\n#pragma unroll\n      for (int chain",
            "step < 3; ++step) {\n      for (int chain",
        ),
        ("ceiling_wgmma", "at < SPAN_BYTES", "at < SPAN_BYTES - STEP_BYTES"),
        ("ceiling_wgmma_tf32", "/ CHUNK_BYTES ^ row % 8", "/ CHUNK_BYTES"),
        ("ceiling_shared_read", "round < args.repeats", "round + 1 < args.repeats"),
        ("ceiling_shared_read", "+ 32 * round", ""),
        ("ceiling_l2_read", "at -= args.count", "at = 0"),
        ("ceiling_dram_read", "at += step;", ""),
        ("ceiling_dram_write", "4 * at + j", "4 * at"),
        ("ceiling_dram_copy", "args.source + 4ull * at", "args.source + 4ull * (at & ~1u)"),
    ],
)
def test_a_kernel_that_skips_work_is_caught(tiny_hopper, name, text, instead):
    todo = [
        on_host(work, text=text, instead=instead) if work.ceiling.name == name else on_host(work)
        for work in works(tiny_hopper)
    ]
    with EmulatorBackend() as emulator, pytest.raises(WrongResult, match=r"thread \d+ gives 0x"):
        check(emulator, todo, allocate(emulator, todo))


@pytest.mark.parametrize("each", PRODUCTS, ids=lambda c: c.name)
def test_products_are_exact_in_their_types_and_their_sums_in_float32(each):
    a, b = operands(each.product)
    assert max(abs(a).max(), abs(b).max()) < 2**8 and len(np.unique(a)) > 200
    assert np.array_equal(b[: each.product.k], b[each.product.k : 2 * each.product.k])
    on_the_way = np.abs(a[:, : each.product.k]) @ np.abs(b[: each.product.k])
    assert (PRODUCT_ROUNDS * abs(a @ b) + on_the_way).max() < 2**24
    assert np.count_nonzero(a @ b) > 0.98 * (a @ b).size


def test_the_argument_struct_has_the_same_fields_on_both_sides():
    text = re.sub(r"//.*", "", (FOLDER / "args.cuh").read_text(encoding="utf-8"))
    body = text[text.index("struct CeilingArgs {") : text.index("};")]
    assert re.findall(r"(\w+);", body) == [name for name, _ in CeilingArgs._fields_]
    assert ctypes.sizeof(CeilingArgs) == 32


@pytest.mark.parametrize(
    ("name", "tera_per_s"),
    [
        ("ceiling_ffma", 132 * 128 * 2 * 1980e6 / 1e12),
        ("ceiling_wgmma", 132 * 4096 * 1980e6 / 1e12),
        ("ceiling_wgmma_tf32", 132 * 2048 * 1980e6 / 1e12),
        ("ceiling_shared_read", 132 * 128 * 1980e6 / 1e12),
        ("ceiling_dram_copy", 6144 / 8 * 2 * 3201e6 / 1e12),
        ("ceiling_l2_read", None),
    ],
)
def test_theoretical_figures_follow_from_the_card_and_its_clocks(name, tera_per_s):
    got = theoretical(BY_NAME[name], H200, Clocks(sm_mhz=1980, memory_mhz=3201))
    assert got == (None if tera_per_s is None else pytest.approx(tera_per_s * 1e12))
    assert theoretical(BY_NAME[name], H200, Clocks(None, None)) is None


def test_a_card_with_too_little_free_memory_is_refused():
    assert array_bytes(139 << 30, 60 << 20) == 8 << 30
    assert array_bytes(12 << 30, 64 << 20) == 3 << 30
    with pytest.raises(InvalidInput, match=r"2\.0 GiB of device memory free.*16 times the L2 of 60 MiB"):
        array_bytes(2 << 30, 60 << 20)


class EmulatedGpu(EmulatorBackend):
    """The emulator with a GPU's particulars. What a timer launches is noted and not run."""

    sm_count, arch, driver_version, stream = 1, SM_89, "13.0", object()

    def __init__(self) -> None:
        super().__init__()
        sizes = SimpleNamespace(l2_cache_size=TINY_L2_BYTES, global_memory_bus_width=1024)
        self.device = SimpleNamespace(name="NVIDIA Test", uuid="0", pci_bus_id="0", properties=sizes)
        self.names = {(work.binary.key, work.count): work.ceiling.name for work in works(lab_ceilings.card_of(self))}
        self.timed: list[str] = []

    def free_bytes(self) -> int:
        return 4 * TINY_ARRAY_BYTES

    def current(self):
        return contextlib.nullcontext()

    def launch(self, binary, grid, args, *, stream=None):
        name = self.names[binary.key, args.count]
        if stream is not None:
            self.timed.append(name)
            return
        source = host_source(BY_NAME[name].source, args_type=ARGS_TYPE)
        super().launch(compile_host(source), grid, args)


class FakeTimer:
    """Each ceiling's launch takes 2000 µs more than the one before it in the list."""

    def __init__(self, gpu: EmulatedGpu) -> None:
        self.gpu, self.host_s = gpu, 0.0

    def now_s(self) -> float:
        return self.host_s

    def time_us(self, batches, during) -> list[float]:
        self.gpu.timed.clear()
        for batch in batches:
            batch(self.gpu.stream)
        during()
        self.host_s += 0.1
        return [2000.0 * (1 + list(BY_NAME).index(name)) for name in self.gpu.timed]


@pytest.fixture
def measured(tiny, monkeypatch) -> Record:
    gpu = EmulatedGpu()
    reading = ClockReading(sm_mhz=2000, memory_mhz=3000, power_w=100.0)
    monkeypatch.setattr(lab_ceilings, "CudaTimer", lambda _: FakeTimer(gpu))
    monkeypatch.setattr(lab_ceilings, "device_clocks", lambda gpu: SimpleNamespace(reason="", read=lambda: reading))
    with gpu:
        return lab_ceilings.measured_ceilings(gpu, lambda _: None)


def test_rows_hold_rates_that_follow_from_work_and_time(measured, tiny):
    assert [row.rung for row in measured.rows] == list(BY_NAME)
    had = [(index, row) for index, row in enumerate(measured.rows) if row.failure is None]
    for (index, row), work in zip(had, works(tiny), strict=True):
        assert row.time_us == 2000.0 * (1 + index) and row.verified
        seconds = row.time_us * 1e-6
        if work.flop:
            assert row.tflops == pytest.approx(work.flop / seconds / 1e12) and row.tb_per_s is None
        else:
            assert row.tb_per_s == pytest.approx(work.moved_bytes / seconds / 1e12) and row.tflops is None
    ffma, _, wmma, mma_sync, shared, l2, read, write, copy = (row for _, row in had)
    assert ffma.fraction_of_peak == pytest.approx(ffma.tflops * 1e12 / (128 * 2 * 2000e6))
    assert mma_sync.fraction_of_peak == pytest.approx(mma_sync.tflops * 1e12 / (512 * 2000e6))
    rounds, chains, steps = 2, 4, 4
    assert wmma.problem["flop"] % (8 * rounds * chains * steps * 2 * 16**3) == 0
    assert shared.fraction_of_peak == pytest.approx(shared.tb_per_s * 1e12 / (128 * 2000e6))
    assert read.fraction_of_peak == pytest.approx(read.tb_per_s * 1e12 / (128 * 2 * 3000e6))
    assert l2.fraction_of_peak is None
    assert copy.problem["bytes"] == 2 * read.problem["bytes"] == 2 * write.problem["bytes"]


def test_a_card_without_wgmma_has_rows_that_say_so(measured):
    absent = [row for row in measured.rows if row.failure is not None]
    assert [(row.rung, row.failure) for row in absent] == [
        ("ceiling_wgmma", "Unsupported"),
        ("ceiling_wgmma_tf32", "Unsupported"),
    ]
    lacks = "needs wgmma, which sm_89 lacks; sm_90a can run it"
    assert all(row.time_us is None and row.tflops is None and lacks in row.verdict for row in absent)
    assert "\n".join(line.plain for line in ceiling_lines(measured)).count(f"not here: ceiling_wgmma: {lacks}") == 1
    assert ceilings_table(measured).count(lacks) == 2
    assert ceiling([measured], "NVIDIA Test", "ceiling_wgmma") is None


def test_a_record_of_ceilings_reads_back_and_is_printed_with_its_clocks(measured):
    again = Record.from_json(json.loads(json.dumps(measured.to_json())))
    assert again.rows == measured.rows and again.environment["measurement"]["median_memory_mhz"] == 3000
    printed = "\n".join(line.plain for line in ceiling_lines(again))
    assert all(name in printed for name in BY_NAME)
    assert "SM 2000 MHz, memory 3000 MHz" in printed
    assert ceilings_table(again).count("\n") == len(CEILINGS) + 3


def dated(date: str, device: str, tflops: float, **more) -> Record:
    row = Row(rung="ceiling_ffma", problem={"flop": 1}, time_us=1.0, tflops=tflops, verified=True, **more)
    return Record(command="ceilings", environment={"date": date, "device": {"name": device}}, rows=[row])


def test_the_ceiling_of_a_device_is_its_newest():
    records = [dated("2026-02-01", "X", 60.0), dated("2026-03-01", "X", 61.0), dated("2026-04-01", "Y", 9.0)]
    assert ceiling(records, "X", "ceiling_ffma").tflops == 61.0
    assert ceiling(records, "Z", "ceiling_ffma") is None
    assert ceiling(records, "X", "ceiling_l2_read") is None


def recorded_rates(**tflops: float) -> Record:
    rows = [
        Row(rung=f"ceiling_{name}", problem={"flop": 1}, time_us=1.0, tflops=rate, verified=True)
        for name, rate in tflops.items()
    ]
    return Record(command="ceilings", environment={"date": "2026-03-01", "device": {"name": "X"}}, rows=rows)


def test_the_compute_ceiling_is_the_fastest_instruction_that_takes_the_elements():
    hopper = [recorded_rates(ffma=66.0, wmma=610.0, mma_sync=620.0, wgmma=940.0, wgmma_tf32=470.0)]
    names = {
        dtype: compute_ceiling(hopper, "X", dtype).rung for dtype in ("float32", "tfloat32", "bfloat16", "float16")
    }
    assert list(names.values()) == ["ceiling_ffma", "ceiling_wgmma_tf32", "ceiling_wgmma", "ceiling_wgmma"]
    assert compute_ceiling([recorded_rates(mma_sync=165.0, wmma=160.0)], "X", "bfloat16").rung == "ceiling_mma_sync"
    assert compute_ceiling([recorded_rates(ffma=66.0)], "X", "bfloat16") is None
    assert set(INSTRUCTIONS) == {each.name for each in CEILINGS if each.limit in ("fma", "tensor")} - {
        "ceiling_ffma_no_reuse"
    }


def test_tables_of_a_device_with_ceilings_say_the_share_of_the_measured_one():
    environment = {
        "date": "2026-03-01",
        "commit": "abc",
        "device": {"name": "X", "sm_count": 1},
        "measurement": {"median_sm_mhz": 1000, "rounds": 20},
        "versions": {"nvidia-cuda-nvrtc": "13.0", "nvidia-cublas": "13.1"},
        "baseline": "cuBLAS (torch), torch 2",
    }
    problem = {"m": 64, "n": 64, "k": 64}
    row = Row(rung="k99", number=99, problem=problem, time_us=5.0, tflops=30.0, verified=True)
    ladder = Record(command="ladder", environment=environment, rows=[row])
    assert "measured FFMA" not in ladder_tables([ladder, dated("2026-03-01", "Y", 60.0)])
    with_ceiling = ladder_tables([ladder, dated("2026-03-01", "X", 60.0)])
    assert "% of measured FFMA" in with_ceiling and "| 50.0 |" in with_ceiling
    assert "Measured FFMA: 60.0 TFLOP/s" in with_ceiling
    widths = {line.count("|") for line in with_ceiling.splitlines() if line.startswith("|")}
    assert len(widths) == 1
    row.problem = {**problem, "dtype": "bfloat16"}
    of_wgmma = ladder_tables([ladder, dated("2026-03-01", "X", 60.0), recorded_rates(wgmma=120.0)])
    assert "% of measured wgmma" in of_wgmma and "| 25.0 |" in of_wgmma and "FFMA" not in of_wgmma


def test_without_a_gpu_the_command_says_so_with_status_3(monkeypatch):
    def nothing():
        raise NoDevice("no usable GPU: none")

    monkeypatch.setattr("tilewright.run.cuda.probe", nothing)
    done = CliRunner().invoke(app, ["ceilings", "--json"], catch_exceptions=False)
    assert done.exit_code == 3 and done.stdout == ""
    assert "no usable GPU" in done.stderr
