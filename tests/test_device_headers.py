"""The device headers' CUDA bodies: what NVRTC makes of each function on architectures with and without Hopper's."""

import re
import subprocess

import pytest
from cuda.pathfinder import find_nvidia_binary_utility

from tilewright.arch import get_arch
from tilewright.compile.nvrtc import compile_cubin
from tilewright.errors import CompileFailed

SETUP = """__shared__ __align__(16) unsigned short s[32 * 8];
__shared__ Mbarrier b[2];
unsigned r[4], one[1], two[2];
int alike;
float sum = args.x[t];
s[t] = args.n;
if (t == 0) mbarrier_init(b, 32);
__syncthreads();
"""

# What each line must become, as a pattern for each of the architectures it differs on.
LINES = {
    "sum += __shfl_sync(FULL_WARP, sum, args.n, 16);": "SHFL.IDX",
    "sum += __shfl_up_sync(FULL_WARP, sum, 1);": "SHFL.UP",
    "sum += __shfl_down_sync(FULL_WARP, sum, 1);": "SHFL.DOWN",
    "sum += __shfl_xor_sync(FULL_WARP, sum, 16);": "SHFL.BFLY",
    "sum += __all_sync(FULL_WARP, sum > 0);": "VOTEU?.ALL",
    "sum += __any_sync(FULL_WARP, sum > 1);": "VOTEU?.ANY",
    "sum += __ballot_sync(FULL_WARP, sum > 2);": "VOTEU?.ANY",
    "sum += __match_any_sync(FULL_WARP, args.flags[t]);": "MATCH.ANY",
    "sum += __match_all_sync(FULL_WARP, args.flags[t], &alike) + alike;": "MATCH.ALL",
    "__syncwarp(); if (elect_one()) sum += 1;": {"sm_80": "S2R .*SR_LANEID", "": "ELECT"},
    "barrier_sync(3, 64);": "BAR.SYNC.* 0x3, 0x40",
    "barrier_arrive(args.n, 64);": "BAR.ARV",
    "ldmatrix<1>(one, s + t * 8); sum += one[0];": r"LDSM.16.M88 ",
    "ldmatrix<2>(two, s + t * 8); sum += two[0] + two[1];": r"LDSM.16.M88.2 ",
    "ldmatrix<4>(r, s + t * 8); sum += r[0] + r[1] + r[2] + r[3];": r"LDSM.16.M88.4 ",
    "ldmatrix<1, true>(one, s + t * 8); sum += one[0];": r"LDSM.16.MT88 ",
    "ldmatrix<2, true>(two, s + t * 8); sum += two[0] + two[1];": r"LDSM.16.MT88.2 ",
    "ldmatrix<4, true>(r, s + t * 8); sum += r[0] + r[1] + r[2] + r[3];": r"LDSM.16.MT88.4 ",
    "mbarrier_arrive(b);": {"sm_80": "ATOMS.ARRIVE.64", "": "SYNCS.ARRIVE.TRANS64.A1T0"},
    "mbarrier_wait(b, 0);": {"sm_80": "LOP3.LUT .*0x80000000", "": "SYNCS.PHASECHK.TRANS64.TRYWAIT"},
    "sum += mbarrier_test_wait(b, 1);": {"sm_80": "LOP3.LUT .*0x80000000", "": "SYNCS.PHASECHK.TRANS64 "},
    "cp_async<16>(s, args.x); cp_async_mbarrier_arrive(b);": {"": "ARRIVES.LDGSTSBAR.64"},
    "cp_async_mbarrier_arrive_noinc(b);": {"sm_80": "ARRIVES.LDGSTSBAR.64", "": "ARRIVES.LDGSTSBAR.64.ARVCNT"},
    "sum += load_acquire(args.flags);": "LDG.E.STRONG.GPU",
    "store_release(args.flags, 1);": "STG.E.STRONG.GPU",
    "sum += atomic_add(args.flags + t, 1u);": "ATOMG.E.ADD.STRONG.GPU",
    "atomic_add(args.y, args.x[t]);": "REDG?.E.ADD.F32",
    "wait_until(args.flags, 3);": "CCTL.IVALL",
    "mbarrier_inval(b + 1);": {"sm_80": "EXIT", "": "SYNCS.CCTL.IV"},
}
HOPPER_LINES = {
    "mbarrier_expect_tx(b + 1, args.n);": "SYNCS.ARRIVE.TRANS64.RED.A0TR",
    "mbarrier_arrive_expect_tx(b, args.n);": "SYNCS.ARRIVE.TRANS64 RZ",
    "mbarrier_complete_tx(b, args.n);": "SYNCS.ARRIVE.TRANS64.RED.A0TX",
    "sum += mbarrier_try_wait(b, 1);": "SYNCS.PHASECHK.TRANS64.TRYWAIT",
}


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a", "sm_120a"])
def test_each_function_becomes_the_instruction_it_stands_for(device_probe, tmp_path, arch):
    tool = find_nvidia_binary_utility("nvdisasm")
    if tool is None:
        pytest.skip("no nvdisasm: pip install 'tilewright[sass]'")
    lines = LINES if arch == "sm_80" else {**LINES, **HOPPER_LINES}
    binary = compile_cubin(device_probe(f"{SETUP}{chr(10).join(lines)}\nargs.y[t] = sum;", "grid"), get_arch(arch))
    assert "warning" not in binary.log
    (tmp_path / "probe.cubin").write_bytes(binary.payload)
    listing = subprocess.run([tool, tmp_path / "probe.cubin"], capture_output=True, encoding="utf-8", check=True).stdout
    for line, instruction in lines.items():
        wanted = instruction if isinstance(instruction, str) else instruction.get(arch, instruction[""])
        assert re.search(wanted, listing), f"{line} has not become {wanted}"


@pytest.mark.parametrize("line", HOPPER_LINES)
def test_a_function_that_needs_sm_90_is_not_there_on_sm_80(device_probe, line):
    with pytest.raises(CompileFailed, match=r"identifier .* is undefined"):
        compile_cubin(device_probe(f"Mbarrier* b = nullptr; float sum = 0; {line}"), get_arch("sm_80"))
