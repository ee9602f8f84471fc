"""Kernels that part their warps: roles read off the SASS, registers by setmaxnreg, and loops that are none."""

from dataclasses import replace
from fractions import Fraction

import pytest

from tilewright.arch import get_arch
from tilewright.compile.binary import KernelSource
from tilewright.compile.nvrtc import compile_cubin
from tilewright.declare import accesses, all_rungs, rung_config
from tilewright.facts.disassemble import disassemble
from tilewright.facts.flow import Loop, loops
from tilewright.facts.mainloop import fmas, kind_of, main_loop
from tilewright.facts.roles import roles
from tilewright.facts.sass import parse
from tilewright.record import Row

SPECIALISED = """\
#include "tilewright/registers.cuh"
#include "tilewright/tma.cuh"
#include "tilewright/wgmma.cuh"
using namespace tilewright;
struct Args { TensorMap map; float* out; int steps; };
extern "C" __global__ void __launch_bounds__(256, 1) specialised(const __grid_constant__ Args args) {
  __shared__ alignas(1024) unsigned char a[64 * 128], b[8 * 128];
  __shared__ Mbarrier full, empty;
  if (threadIdx.x == 0) {
    mbarrier_init(&full, 1);
    mbarrier_init(&empty, 1);
    fence_mbarrier_init();
  }
  __syncthreads();
  if (threadIdx.x < 128) {
    release_registers<40>();
    if (threadIdx.x != 0) return;
#pragma unroll 1
    for (int step = 0; step < args.steps; ++step) {
      mbarrier_wait(&empty, step % 2 ^ 1);
      mbarrier_arrive_expect_tx(&full, sizeof a + sizeof b);
      tma_load(a, &args.map, &full, 64 * step, 0, 0);
      tma_load(b, &args.map, &full, 64 * step, 64, 0);
    }
    return;
  }
  acquire_registers<232>();
  float d[4] = {};
#pragma unroll 1
  for (int step = 0; step < args.steps; ++step) {
    mbarrier_wait(&full, step % 2);
    wgmma_fence();
    for (int at = 0; at < 128; at += 32) {
      const auto mine = smem_descriptor(a + at, 16, 1024, 128), theirs = smem_descriptor(b + at, 16, 1024, 128);
      wgmma<8, BF16, false, false>(d, mine, theirs, true);
    }
    wgmma_commit();
    wgmma_wait<0>();
    if (threadIdx.x == 128) mbarrier_arrive(&empty);
  }
  wgmma_registers(d);
  for (int i = 0; i < 4; ++i) args.out[4 * threadIdx.x + i] = d[i];
}
"""


def config_of(**declared):
    """A config that declares other accesses than its rung's."""
    return rung_config(replace(all_rungs().find("t01"), accesses=accesses(global_loads="1", **declared)))


CONSUMES = config_of(k_step="64", results="64 * 8", math_threads="128")
ONE_A_STEP = config_of(k_step="1", results="NUM_THREADS * 32")


def written(*lines: str):
    """Instructions from 'OPCODE operands' lines; 'NAME:' is a label."""
    text, address = [".text.k:"], 0
    for line in lines:
        if line.endswith(":"):
            text.append(f".L_{line}")
        else:
            text.append(f"        /*{address:04x}*/                   {line} ;")
            address += 16
    return parse("\n".join(text), "k")


FFMAS = ["FFMA R0, R1, R2, R0"] * 32


@pytest.mark.parametrize(
    ("text", "kind", "share"),
    [
        ("HGMMA.64x256x16.F32.BF16 R24, gdesc[UR4], R24, gsb0", "HGMMA", 64 * 256 * 16 // 128),
        ("HGMMA.64x8x8.F32.TF32 R24, gdesc[UR4], R24, UP0", "HGMMA", 64 * 8 * 8 // 128),
        ("HMMA.16816.F32.BF16 R80, R8, R24, R80", "HMMA", 16 * 8 * 16 // 32),
        ("LDSM.16.MT88.4 R4, [R8]", "LDSM.x4", 0),
        ("STSM.16.M88.2 [R8], R4", "STSM.x2", 0),
        ("UTMALDG.3D [UR8], [UR16]", "UTMALDG", 0),
        ("UTMASTG.3D [UR8], [UR16]", "UTMASTG", 0),
        ("SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR9+0x30020], R2", "SYNCS", 0),
        ("WARPGROUP.ARRIVE", "other", 0),
    ],
)
def test_instructions_of_tensor_cores_and_copies_count_by_name_and_shape(text, kind, share):
    (instruction,) = written(text)
    assert (kind_of(instruction), fmas([instruction])) == (kind, share)


def test_a_wait_that_the_compiler_put_far_behind_makes_no_loop_of_what_lies_between():
    code = written(
        *["head:", "SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR9], R2", "@!P0 BRA `(.L_again)", "back:", *FFMAS],
        *["@P1 BRA `(.L_head)", "EXIT"],
        *["again:", "SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR9], R2", "@!P0 BRA `(.L_again)", "BRA `(.L_back)"],
    )
    assert loops(code) == [Loop(0, 34), Loop(36, 37)]
    assert main_loop(code, ONE_A_STEP).mix == {"FFMA": 32, "SYNCS": 1, "branch": 2}


def test_a_loop_from_tile_to_tile_is_no_main_loop_however_much_it_multiplies():
    code = written("tile:", *FFMAS, *FFMAS, "step:", *FFMAS, "@P0 BRA `(.L_step)", "@P1 BRA `(.L_tile)", "EXIT")
    assert main_loop(code, ONE_A_STEP).loop == Loop(64, 96)


def test_roles_do_what_only_they_reach():
    code = written(
        *["@P0 BRA `(.L_copies)", "USETMAXREG.TRY_ALLOC.CTAPOOL UP0, 0xe8", "head:", *FFMAS, "@P0 BRA `(.L_head)"],
        *["STSM.16.M88.4 [R8], R4", "UTMASTG.3D [UR8], [UR16]", "BRA `(.L_end)"],
        *["copies:", "USETMAXREG.DEALLOC.CTAPOOL 0x28", "more:", "UTMALDG.3D [UR8], [UR16]", "@P0 BRA `(.L_more)"],
        *["end:", "BAR.SYNC.DEFER_BLOCKING 0x0", "EXIT"],
    )
    producer, consumer = roles(code, main_loop(code, ONE_A_STEP))
    assert (producer.name, producer.registers, producer.loop) == ("producer", 40, {"UTMALDG": 1, "branch": 1})
    assert (consumer.name, consumer.registers) == ("consumer", 232)
    assert consumer.to_json()["elsewhere"] == {"STSM.x4": 1, "UTMASTG": 1}
    assert consumer.loop["FFMA"] == 32


def test_a_kernel_whose_warps_stay_together_has_no_roles():
    code = written("head:", "UTMALDG.3D [UR8], [UR16]", *FFMAS, "@P0 BRA `(.L_head)", "EXIT")
    assert roles(code, main_loop(code, ONE_A_STEP)) == []


def test_a_compiled_kernels_roles_and_its_main_loop(with_nvdisasm):
    source = KernelSource("specialised", "specialised", SPECIALISED, "specialised.cu")
    code = disassemble(compile_cubin(source, get_arch("sm_90a")))
    loop = main_loop(code, CONSUMES)
    assert loop.how == "one trip is one K-tile of 64" and loop.mix["HGMMA"] == 4
    assert "UTMALDG" not in loop.mix
    producer, consumer = roles(code, loop)
    assert [producer.registers, consumer.registers] == [40, 232]
    assert producer.loop["UTMALDG"] == 2 and consumer.loop["HGMMA"] == Fraction(4)


def test_roles_in_a_row_survive_json():
    code = written("USETMAXREG.DEALLOC.CTAPOOL 0x18", "more:", "UTMALDG.3D [UR8]", "@P0 BRA `(.L_more)", "EXIT")
    row = Row(rung="t06", problem={}, roles=[role.to_json() for role in roles(code, None)])
    told = {"role": "producer", "registers": 24, "loop": {"UTMALDG": 1}, "elsewhere": {}}
    assert Row.from_json(row.to_json()).roles == [told]
