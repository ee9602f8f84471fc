"""A card's ceilings: checked, timed in the same rounds, and made into rows of a record."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilewright.errors import LaunchFailed, Unsupported
from tilewright.lab.gpu_environment import device_clocks, gpu_environment
from tilewright.measure import Arm, CudaTimer, Samples, measure
from tilewright.measure.ceilings.check import Buffers, allocate, args_of, check
from tilewright.measure.ceilings.kernels import CEILINGS, Ceiling
from tilewright.measure.ceilings.words import SEED
from tilewright.measure.ceilings.work import Card, Clocks, Work, array_bytes, theoretical, works
from tilewright.record import Record, Row
from tilewright.run.cuda import CudaBackend

ROUNDS, BUDGET_S = 60, 30.0


def measured_ceilings(gpu: CudaBackend, on_status: Callable[[str], None]) -> Record:
    """Every ceiling of the card, and a row with the reason for each that it doesn't have.

    Raises WrongResult where a kernel didn't do its work, which then has no time.
    """
    card = card_of(gpu)
    on_status(f"compiling for {card.arch.name}")
    todo = works(card)
    buffers = allocate(gpu, todo)
    on_status(f"checking every thread's result, over two arrays of {card.array_bytes / 2**30:.1f} GiB")
    check(gpu, todo, buffers)
    on_status(f"measuring {len(todo)} arms, up to {ROUNDS} rounds or {BUDGET_S:g} s")
    clocks = device_clocks(gpu)
    with gpu.current():
        samples = measure(
            [_arm(work, gpu, buffers) for work in todo],
            CudaTimer(gpu.stream),
            rounds=ROUNDS,
            seed=SEED,
            budget_s=BUDGET_S,
            slots=1,
            read_clocks=clocks.read,
        )
    if samples.stop == "throttled":
        raise LaunchFailed(
            f"throttled: {samples.rejected_rounds} rounds fell to thermal or hardware slowdown and {samples.rounds} "
            "counted; cool the card"
        )
    return Record(
        command="ceilings",
        environment=gpu_environment(gpu, samples, clocks.reason, data="words that follow from their index"),
        rows=_rows(todo, samples, card),
    )


def _rows(todo: Sequence[Work], samples: Samples, card: Card) -> list[Row]:
    done = {work.ceiling.name: work for work in todo}
    return [
        ceiling_row(done[ceiling.name], samples, card) if ceiling.name in done else absent_row(ceiling, card)
        for ceiling in CEILINGS
    ]


def absent_row(ceiling: Ceiling, card: Card) -> Row:
    """The row of a ceiling that the card doesn't have, which says what it lacks."""
    row = Row(rung=ceiling.name, problem={}, summary=ceiling.summary, arch=card.arch.name)
    try:
        ceiling.require_arch(card.arch)
    except Unsupported as lacking:
        row.failure, row.verdict = lacking.kind, str(lacking)
    return row


def card_of(gpu: CudaBackend) -> Card:
    """What sizes and theoretical figures follow from. Raises InvalidInput where too little memory is free."""
    properties = gpu.device.properties
    l2_bytes = int(properties.l2_cache_size)
    return Card(
        arch=gpu.arch,
        sm_count=gpu.sm_count,
        l2_bytes=l2_bytes,
        array_bytes=array_bytes(gpu.free_bytes(), l2_bytes),
        memory_bus_bits=int(properties.global_memory_bus_width),
    )


def _arm(work: Work, gpu: CudaBackend, buffers: Buffers) -> Arm:
    args = args_of(work, buffers)
    return Arm(work.ceiling.name, lambda _, stream: gpu.launch(work.binary, work.grid, args, stream=stream))


def ceiling_row(work: Work, samples: Samples, card: Card) -> Row:
    """The row of a checked and timed ceiling."""
    ceiling = work.ceiling
    time_us = samples.median_us(ceiling.name)
    per_s = (work.flop or work.moved_bytes) / time_us * 1e6
    limit = theoretical(ceiling, card, Clocks(samples.median_sm_mhz, samples.median_memory_mhz))
    return Row(
        rung=ceiling.name,
        problem={"flop": work.flop} if work.flop else {"bytes": work.moved_bytes},
        summary=ceiling.summary,
        arch=card.arch.name,
        backend="cuda",
        verified=True,
        verdict="every thread's result bit-equal",
        time_us=time_us,
        samples_us=[round(t, 3) for t in samples.times_us[ceiling.name]],
        inner=samples.inner[ceiling.name],
        launch=samples.launch,
        tflops=per_s / 1e12 if work.flop else None,
        tb_per_s=None if work.flop else per_s / 1e12,
        fraction_of_peak=None if limit is None else per_s / limit,
        registers=work.binary.resources.registers if work.binary.resources is not None else None,
        binary=work.binary.key,
    )
