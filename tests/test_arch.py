"""Architecture limits, names and occupancy, against figures worked out by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.arch import ARCHS, FEATURES, LIMITERS, Occupancy, arch_for_capability, get_arch, occupancy
from tilewright.errors import InvalidConfig, UnknownName

KB = 1024


@pytest.mark.parametrize("spelling", ["sm_90a", "sm_90", "90a", "90", "9.0", "SM_90A"])
def test_every_spelling_finds_the_architecture(spelling: str) -> None:
    assert get_arch(spelling).name == "sm_90a"


@pytest.mark.parametrize("spelling", ["", "sm_75", "9", "a", "sm_90b", "hopper"])
def test_an_unknown_architecture_is_named_with_what_exists(spelling: str) -> None:
    with pytest.raises(UnknownName, match=r"sm_120a.*nearest name is sm_") as caught:
        get_arch(spelling)
    assert repr(spelling) in str(caught.value)


def test_the_nearest_architecture_is_suggested() -> None:
    with pytest.raises(UnknownName, match="nearest name is sm_103a"):
        get_arch("sm_1030")


@pytest.mark.parametrize("arch", ARCHS.values(), ids=ARCHS)
def test_a_device_finds_its_architecture_by_capability(arch: object) -> None:
    assert arch_for_capability(*arch.compute_capability) is arch  # type: ignore[attr-defined]


def test_an_unlisted_capability_is_refused() -> None:
    with pytest.raises(UnknownName, match=r"12\.1"):
        arch_for_capability(12, 1)


@pytest.mark.parametrize(
    ("name", "threads", "warps", "ctas", "per_sm_kb", "optin_kb", "lanes"),
    [
        ("sm_80", 2048, 64, 32, 164, 163, 64),
        ("sm_86", 1536, 48, 16, 100, 99, 128),
        ("sm_89", 1536, 48, 24, 100, 99, 128),
        ("sm_90a", 2048, 64, 32, 228, 227, 128),
        ("sm_100a", 2048, 64, 32, 228, 227, 128),
        ("sm_103a", 2048, 64, 32, 228, 227, 128),
        ("sm_120a", 1536, 48, 24, 100, 99, 128),
    ],
)
def test_limits_are_those_of_the_capability_table(
    name: str, threads: int, warps: int, ctas: int, per_sm_kb: int, optin_kb: int, lanes: int
) -> None:
    names = get_arch(name).names()
    assert names["arch_max_threads_per_sm"] == threads
    assert names["arch_max_warps_per_sm"] == warps
    assert names["arch_max_ctas_per_sm"] == ctas
    assert names["arch_smem_per_sm_bytes"] == per_sm_kb * KB
    assert names["arch_smem_optin_bytes"] == optin_kb * KB
    assert names["arch_fp32_lanes_per_sm"] == lanes
    assert names["arch_smem_static_bytes"] == 48 * KB
    assert names["arch_registers_per_sm"] == 65536
    assert (names["arch_max_threads_per_cta"], names["arch_warp_size"]) == (1024, 32)


@pytest.mark.parametrize(
    ("feature", "where"),
    [
        ("cp_async", "sm_80 sm_86 sm_89 sm_90a sm_100a sm_103a sm_120a"),
        ("stmatrix", "sm_90a sm_100a sm_103a sm_120a"),
        ("tma", "sm_90a sm_100a sm_103a sm_120a"),
        ("setmaxnreg", "sm_90a sm_100a sm_103a sm_120a"),
        ("wgmma", "sm_90a"),
        ("tcgen05", "sm_100a sm_103a"),
    ],
)
def test_features_are_had_by_the_right_architectures(feature: str, where: str) -> None:
    assert {name for name, arch in ARCHS.items() if arch.names()[f"arch_has_{feature}"]} == set(where.split())


def test_every_feature_of_an_architecture_is_a_known_one() -> None:
    for arch in ARCHS.values():
        assert arch.features <= set(FEATURES)
        assert {f"arch_has_{feature}" for feature in FEATURES} <= arch.names().keys()


def test_the_largest_carveout_is_what_an_sm_holds() -> None:
    for arch in ARCHS.values():
        assert arch.smem_carveouts_bytes[-1] == arch.smem_per_sm_bytes
        assert list(arch.smem_carveouts_bytes) == sorted(arch.smem_carveouts_bytes)


@pytest.mark.parametrize(
    ("arch", "threads", "registers", "smem_bytes", "expected"),
    [
        # 227 -> 7424 a warp; 16384 // 7424 = 2 warps a partition, 8 an SM
        ("sm_120a", 128, 227, 0, Occupancy(2, 8, 8 / 48, ("registers",))),
        ("sm_120a", 128, 96, 0, Occupancy(5, 20, 20 / 48, ("registers",))),
        ("sm_120a", 256, 93, 0, Occupancy(2, 16, 16 / 48, ("registers",))),
        ("sm_90a", 128, 227, 0, Occupancy(2, 8, 0.125, ("registers",))),
        ("sm_90a", 128, 96, 0, Occupancy(5, 20, 0.3125, ("registers",))),
        ("sm_90a", 256, 93, 0, Occupancy(2, 16, 0.25, ("registers",))),
        # 32 registers: 16 warps a partition, exactly the SM's 64: a tie
        ("sm_90a", 1024, 32, 0, Occupancy(2, 64, 1.0, ("warps", "registers"))),
        ("sm_90a", 512, 24, 0, Occupancy(4, 64, 1.0, ("warps",))),
        ("sm_90a", 32, 16, 0, Occupancy(32, 32, 0.5, ("ctas",))),
        ("sm_86", 96, 16, 0, Occupancy(16, 48, 1.0, ("warps", "ctas"))),
        ("sm_86", 32, 16, 0, Occupancy(16, 16, 16 / 48, ("ctas",))),
        # 48 KB + 1 KB reserve = 49 KB: 4 in 228 KB, 3 in 164 KB, 2 in 100 KB
        ("sm_90a", 128, 32, 48 * KB, Occupancy(4, 16, 0.25, ("smem",))),
        ("sm_80", 128, 32, 48 * KB, Occupancy(3, 12, 12 / 64, ("smem",))),
        ("sm_89", 128, 32, 48 * KB, Occupancy(2, 8, 8 / 48, ("smem",))),
        # 56 KB + 1 KB is a quarter of 228 KB; one more byte takes another 128
        ("sm_90a", 128, 32, 56 * KB, Occupancy(4, 16, 0.25, ("smem",))),
        ("sm_90a", 128, 32, 56 * KB + 1, Occupancy(3, 12, 12 / 64, ("smem",))),
        # 168 registers: 5376 a warp, 3 a partition, 12 an SM: one CTA of 12 warps
        ("sm_90a", 384, 168, 227 * KB, Occupancy(1, 12, 12 / 64, ("registers", "smem"))),
        ("sm_90a", 33, 255, 0, Occupancy(4, 8, 0.125, ("registers",))),
    ],
)
def test_occupancy_and_its_limiters(
    arch: str, threads: int, registers: int, smem_bytes: int, expected: Occupancy
) -> None:
    got = occupancy(get_arch(arch), threads_per_cta=threads, registers=registers, smem_bytes=smem_bytes)
    assert got == expected


@pytest.mark.parametrize(
    ("threads", "registers", "smem_bytes", "says"),
    [
        (1024, 65, 0, "at most 64 a thread"),
        (288, 255, 0, "at most 168 a thread"),
        (1025, 32, 0, "threads_per_cta=1025.*use 1024"),
        (0, 32, 0, "threads_per_cta=0"),
        (128, 256, 0, "registers=256.*use 255"),
        (128, 32, 227 * KB + 1, "smem_bytes=232449.*use 232448"),
    ],
)
def test_a_cta_that_does_not_fit_is_refused_with_the_fix(
    threads: int, registers: int, smem_bytes: int, says: str
) -> None:
    with pytest.raises(InvalidConfig, match=says):
        occupancy(get_arch("sm_90a"), threads_per_cta=threads, registers=registers, smem_bytes=smem_bytes)


def test_the_suggested_register_count_fits() -> None:
    assert occupancy(get_arch("sm_90a"), threads_per_cta=288, registers=168, smem_bytes=0).ctas_per_sm == 1


arch_names = st.sampled_from(list(ARCHS))
thread_counts = st.integers(1, 1024)
register_counts = st.integers(1, 255)
smem_sizes = st.integers(0, 227 * KB)


def ctas(arch: str, threads: int, registers: int, smem_bytes: int) -> int:
    """CTAs an SM holds, 0 where none fits."""
    try:
        got = occupancy(get_arch(arch), threads_per_cta=threads, registers=registers, smem_bytes=smem_bytes)
    except InvalidConfig:
        return 0
    return got.ctas_per_sm


@given(arch_names, thread_counts, register_counts, smem_sizes, st.integers(0, 255), st.integers(0, 64 * KB))
def test_more_of_anything_never_holds_more_ctas(
    arch: str, threads: int, registers: int, smem_bytes: int, more: int, more_bytes: int
) -> None:
    held = ctas(arch, threads, registers, smem_bytes)
    assert ctas(arch, threads + more, registers, smem_bytes) <= held
    assert ctas(arch, threads, registers + more, smem_bytes) <= held
    assert ctas(arch, threads, registers, smem_bytes + more_bytes) <= held


@given(arch_names, thread_counts, register_counts, smem_sizes)
def test_occupancy_stays_within_every_limit(name: str, threads: int, registers: int, smem_bytes: int) -> None:
    arch = get_arch(name)
    try:
        got = occupancy(arch, threads_per_cta=threads, registers=registers, smem_bytes=smem_bytes)
    except InvalidConfig:
        return
    assert 1 <= got.ctas_per_sm <= arch.max_ctas_per_sm
    assert got.warps_per_sm * 32 >= got.ctas_per_sm * threads
    assert 0 < got.occupancy <= 1
    assert got.warps_per_sm * 32 * registers <= arch.registers_per_sm
    assert got.ctas_per_sm * (smem_bytes + KB) <= arch.smem_per_sm_bytes
    assert got.limiters
    assert set(got.limiters) <= set(LIMITERS)
