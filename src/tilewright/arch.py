"""What each GPU architecture allows: limits, features, and the occupancy that follows from them.

Facts only, from NVIDIA's compute capability tables and PTX target notes: nothing here calls CUDA, so every
answer is the same without a GPU. Rules name these limits through `ArchSpec.names`; this module knows no rule,
no kernel and no compiler.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from tilewright.errors import InvalidConfig, UnknownName, Unsupported

KB = 1024
FEATURES = (
    "cp_async",
    "ldmatrix",
    "mma_sync",
    "stmatrix",
    "tma",
    "cluster",
    "dependent_launch",
    "wgmma",
    "setmaxnreg",
    "tcgen05",
)
LIMITERS = ("warps", "ctas", "registers", "smem")


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchSpec:
    """One architecture as a compile target.

    `name` is the target with its accelerated features ('sm_90a'). `smem_*` are bytes: a CTA has
    `smem_static_bytes` without opting in and `smem_optin_bytes` with, the driver adds `smem_reserved_bytes`
    to each, and an SM holds `smem_per_sm_bytes` at the largest of its `smem_carveouts_bytes`. Registers are
    32-bit, allocated to warps in units, separately in each of the SM's sub-partitions. `tensor_fmas_per_sm` are those
    of dense 16-bit products with float32 sums in a clock; TF32 has half of them.
    """

    name: str
    compute_capability: tuple[int, int]
    max_threads_per_sm: int
    max_ctas_per_sm: int
    smem_per_sm_bytes: int
    smem_optin_bytes: int
    smem_carveouts_bytes: tuple[int, ...]
    fp32_lanes_per_sm: int
    tensor_fmas_per_sm: int
    features: frozenset[str]
    warp_size: int = 32
    max_threads_per_cta: int = 1024
    smem_static_bytes: int = 48 * KB
    smem_reserved_bytes: int = KB
    smem_unit_bytes: int = 128
    registers_per_sm: int = 64 * KB
    max_registers_per_cta: int = 64 * KB
    max_registers_per_thread: int = 255
    register_unit_per_warp: int = 256
    sub_partitions: int = 4

    @property
    def max_warps_per_sm(self) -> int:
        """Warps an SM holds at most."""
        return self.max_threads_per_sm // self.warp_size

    def fmas_per_sm(self, dtype: str) -> int:
        """FMAs of an SM in a clock for elements of `dtype`: the lanes' for float32, else those of the tensor cores."""
        by_dtype = {"float32": self.fp32_lanes_per_sm, "tfloat32": self.tensor_fmas_per_sm // 2}
        return by_dtype.get(dtype, self.tensor_fmas_per_sm)

    def names(self) -> dict[str, int]:
        """The integers that architecture rules may name: limits, and `arch_has_<feature>` as 0 or 1."""
        limits = (
            "warp_size",
            "max_threads_per_cta",
            "max_threads_per_sm",
            "max_warps_per_sm",
            "max_ctas_per_sm",
            "smem_static_bytes",
            "smem_optin_bytes",
            "smem_per_sm_bytes",
            "smem_reserved_bytes",
            "registers_per_sm",
            "max_registers_per_cta",
            "max_registers_per_thread",
            "fp32_lanes_per_sm",
        )
        values = {f"arch_{limit}": int(getattr(self, limit)) for limit in limits}
        return {**values, **{f"arch_has_{feature}": int(feature in self.features) for feature in FEATURES}}

    def require(self, features: frozenset[str], what: str) -> None:
        """Raise Unsupported, naming `what` needs them, unless the architecture has all `features`."""
        missing = ", ".join(sorted(features - self.features))
        if missing:
            able = ", ".join(archs_with(features)) or "no architecture here"
            raise Unsupported(f"{what}: needs {missing}, which {self.name} lacks; {able} can run it")


class Occupancy(NamedTuple):
    """How many CTAs of one kernel an SM holds, and which limits hold it there.

    `occupancy` is warps over the SM's maximum, 0 to 1. `limiters` are those of LIMITERS that allow exactly
    `ctas_per_sm`; more than one where they tie.
    """

    ctas_per_sm: int
    warps_per_sm: int
    occupancy: float
    limiters: tuple[str, ...]


_AMPERE = frozenset({"cp_async", "ldmatrix", "mma_sync"})
_TMA = _AMPERE | {"stmatrix", "tma", "cluster", "dependent_launch", "setmaxnreg"}
_CARVEOUTS_100 = tuple(size * KB for size in (0, 8, 16, 32, 64, 100))
_CARVEOUTS_164 = (*_CARVEOUTS_100, 132 * KB, 164 * KB)
_CARVEOUTS_228 = (*_CARVEOUTS_164, 196 * KB, 228 * KB)


def _spec(name: str, carveouts_bytes: tuple[int, ...], features: frozenset[str], **limits: int) -> ArchSpec:
    digits = name.removeprefix("sm_").rstrip("a")
    capability = (int(digits[:-1]), int(digits[-1]))
    return ArchSpec(
        name=name,
        compute_capability=capability,
        max_threads_per_sm=limits["threads"],
        max_ctas_per_sm=limits["ctas"],
        smem_per_sm_bytes=carveouts_bytes[-1],
        smem_optin_bytes=carveouts_bytes[-1] - KB,
        smem_carveouts_bytes=carveouts_bytes,
        fp32_lanes_per_sm=limits["lanes"],
        tensor_fmas_per_sm=limits["tensor"],
        features=features,
    )


ARCHS = {
    spec.name: spec
    for spec in (
        _spec("sm_80", _CARVEOUTS_164, _AMPERE, threads=2048, ctas=32, lanes=64, tensor=1024),
        _spec("sm_86", _CARVEOUTS_100, _AMPERE, threads=1536, ctas=16, lanes=128, tensor=256),
        _spec("sm_89", _CARVEOUTS_100, _AMPERE, threads=1536, ctas=24, lanes=128, tensor=256),
        _spec("sm_90a", _CARVEOUTS_228, _TMA | {"wgmma"}, threads=2048, ctas=32, lanes=128, tensor=2048),
        _spec("sm_100a", _CARVEOUTS_228, _TMA | {"tcgen05"}, threads=2048, ctas=32, lanes=128, tensor=4096),
        _spec("sm_103a", _CARVEOUTS_228, _TMA | {"tcgen05"}, threads=2048, ctas=32, lanes=128, tensor=4096),
        _spec("sm_120a", _CARVEOUTS_100, _TMA, threads=1536, ctas=24, lanes=128, tensor=256),
    )
}


def archs_with(features: frozenset[str]) -> list[str]:
    """The architectures that have all of `features`, by name."""
    return [spec.name for spec in ARCHS.values() if features <= spec.features]


def get_arch(name: str) -> ArchSpec:
    """The architecture called `name`: 'sm_90a', 'sm_90', '90a', '90' or '9.0'.

    Raises UnknownName, naming the value, what exists and the nearest of it.
    """
    digits = name.lower().removeprefix("sm_").replace(".", "")
    for spec in ARCHS.values():
        known = spec.name.removeprefix("sm_")
        if digits in (known, known.rstrip("a")):
            return spec
    import difflib

    nearest = difflib.get_close_matches(f"sm_{digits}", ARCHS, n=1, cutoff=0.0)[0]
    raise UnknownName(f"architecture {name!r}: not known; there are {', '.join(ARCHS)}; the nearest name is {nearest}")


def arch_for_capability(major: int, minor: int) -> ArchSpec:
    """The architecture of a device's compute capability. Raises UnknownName as `get_arch` does."""
    return get_arch(f"{major}.{minor}")


def occupancy(arch: ArchSpec, *, threads_per_cta: int, registers: int, smem_bytes: int) -> Occupancy:
    """CTAs an SM holds, as NVIDIA's occupancy calculator counts them at the largest carve-out.

    `registers` are one thread's. `smem_bytes` are one CTA's, static and dynamic, without the driver's reserve.
    Raises InvalidConfig where not even one CTA fits.
    """
    _check_range("threads_per_cta", threads_per_cta, 1, arch.max_threads_per_cta, arch)
    _check_range("registers", registers, 1, arch.max_registers_per_thread, arch)
    _check_range("smem_bytes", smem_bytes, 0, arch.smem_optin_bytes, arch)
    warps = -(-threads_per_cta // arch.warp_size)
    limits = {
        "warps": arch.max_warps_per_sm // warps,
        "ctas": arch.max_ctas_per_sm,
        "registers": _register_limit(arch, warps, registers),
        "smem": arch.smem_per_sm_bytes // _round_up(smem_bytes + arch.smem_reserved_bytes, arch.smem_unit_bytes),
    }
    ctas = min(limits.values())
    limiters = tuple(name for name in LIMITERS if limits[name] == ctas)
    return Occupancy(ctas, ctas * warps, ctas * warps / arch.max_warps_per_sm, limiters)


def _register_limit(arch: ArchSpec, warps: int, registers: int) -> int:
    unit = arch.register_unit_per_warp
    per_warp = _round_up(registers * arch.warp_size, unit)
    warps_allocated = _round_up(warps, arch.sub_partitions)
    if per_warp * warps_allocated > arch.max_registers_per_cta:
        most = arch.max_registers_per_cta // warps_allocated // unit * unit // arch.warp_size
        raise InvalidConfig(
            f"registers={registers}: a CTA of {warps} warps would take {per_warp * warps_allocated} registers, of "
            f"{arch.max_registers_per_cta} that {arch.name} has for one; use at most {most} a thread or fewer threads"
        )
    warps_per_partition = arch.registers_per_sm // arch.sub_partitions // per_warp
    return warps_per_partition * arch.sub_partitions // warps


def _check_range(name: str, value: int, least: int, most: int, arch: ArchSpec) -> None:
    if not least <= value <= most:
        raise InvalidConfig(
            f"{name}={value}: must be between {least} and {most} on {arch.name}, or no CTA fits an SM; "
            f"use {min(max(value, least), most)}"
        )


def _round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit
