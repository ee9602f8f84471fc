"""Kernels that begin before the one before them has ended: what they wait for, and that others are as they were."""

import pytest

from tilewright.arch import get_arch
from tilewright.compile.nvrtc import compile_cubin
from tilewright.compile.source import kernel_source
from tilewright.compile.variant import Variant
from tilewright.declare import all_rungs, rung_config
from tilewright.errors import CompileFailed, InvalidConfig
from tilewright.facts.disassemble import disassemble
from tilewright.lab.verifying import problems_for
from tilewright.problem import Problem
from tilewright.run.emulator import EmulatorBackend
from tilewright.verify import verify
from tilewright.verify.device import DeviceRuns

H200 = get_arch("sm_90a")
WAIT, START = "ACQBULK", "PREEXIT"
GLOBAL = {"LD", "LDG", "LDGSTS", "ST", "STG", "ATOM", "ATOMG", "RED", "REDG", "UTMALDG", "UTMASTG", "UBLKCP", "CCTL"}
WAITING = [rung for rung in all_rungs().values() if rung.can_wait]
EACH = pytest.mark.parametrize("rung", WAITING, ids=lambda rung: rung.name)
SHAPES = {
    "whole": {"m": 512, "n": 512, "k": 512},
    "guarded": {"m": 500, "n": 504, "k": 72, "beta": 0.5, "batch": 2},
    "short": {"m": 512, "n": 512, "k": 16},
}


def code_of(rung, shape, dependent):
    problem = Problem(**SHAPES[shape], **rung.requires.usual._asdict())
    source = kernel_source(rung_config(rung), problem, Variant(dependent=dependent))
    return disassemble(compile_cubin(source, H200))


def reached_without(code, opcode):
    """Indices of the instructions that some thread may execute without having executed one of `opcode`."""
    at = {instruction.address: index for index, instruction in enumerate(code)}
    waiting, found = [0], set()
    while waiting:
        index = waiting.pop()
        if index in found or index >= len(code):
            continue
        found.add(index)
        instruction = code[index]
        if instruction.opcode == opcode:
            continue
        if instruction.target is not None:
            waiting.append(at[instruction.target])
        if instruction.opcode not in ("BRA", "EXIT", "JMP", "RET") or instruction.conditional:
            waiting.append(index + 1)
    return found


def test_the_rungs_that_serve_short_products_can_wait():
    names = {rung.name[:3] for rung in WAITING}
    assert names >= {"k13", "k14", "k15", "k16", "k17", "k18", "k19", "k20", "k21", "t04", "t05", "t06", "t07", "t08"}


@pytest.mark.usefixtures("with_nvdisasm")
@pytest.mark.parametrize("shape", SHAPES)
@EACH
def test_no_thread_touches_global_memory_or_exits_before_it_has_waited(rung, shape):
    code = code_of(rung, shape, dependent=True)
    before = [code[index] for index in reached_without(code, WAIT)]
    assert any(instruction.opcode == WAIT for instruction in before)
    early = [i for i in before if i.opcode in (*GLOBAL, START, "EXIT") and not i.never_executes]
    assert not early
    assert any(instruction.opcode == START for instruction in code)


@pytest.mark.usefixtures("with_nvdisasm")
@EACH
def test_a_kernel_of_its_own_has_neither(rung):
    assert not {WAIT, START} & {instruction.opcode for instruction in code_of(rung, "guarded", dependent=False)}


@EACH
def test_a_kernel_that_waits_is_right(rung):
    config = rung_config(rung)
    with EmulatorBackend() as backend:
        run = DeviceRuns(backend).of(config, variant=Variant(dependent=True), sm_count=2)
        verify(run, problems_for(config)[:9:4], layers=("integer",)).raise_if_wrong()


def test_a_rung_that_does_not_wait_cannot_be_built_to():
    config = rung_config(all_rungs().find("k01"))
    with pytest.raises(InvalidConfig, match="k01_uncoalesced: dependent=True: its kernel does not wait"):
        kernel_source(config, Problem(m=8, n=8, k=8), Variant(dependent=True))


def test_an_architecture_that_knows_no_such_launch_refuses_the_build():
    config, problem = rung_config(all_rungs().find("k13")), Problem(m=8, n=8, k=8)
    compile_cubin(kernel_source(config, problem), get_arch("sm_80"))
    with pytest.raises(CompileFailed, match="no kernel can begin before the one before it has ended"):
        compile_cubin(kernel_source(config, problem, Variant(dependent=True)), get_arch("sm_80"))
