"""Wrong kernels must be caught, each by what its first line says; their right twins must pass.

A kernel stands in broken/<entry>.cu: `// sabotage: …; caught by: <layer of verify, or kind of error>`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from tilewright import errors
from tilewright.compile.binary import Binary, KernelSource
from tilewright.compile.host import compile_host, host_epilogue
from tilewright.problem import Problem
from tilewright.run.emulator import EmulatorBackend
from tilewright.run.protocol import Grid
from tilewright.verify import LAYERS, Check, checks, problem_set, run_on

PRELUDE = """#include "tilewright/scalar.cuh"
using Scalar = tilewright::F32;
using Output = Scalar;
#include "tilewright/args.cuh"
using tilewright::GemmArgs;
"""
PROBLEMS = problem_set(guarded=True, tile=(16, 16, 16))
MACHINES = ({"placement": "end", "schedule": "default"}, {"placement": "start", "schedule": "reverse"})


@dataclass(frozen=True)
class Kernel:
    name: str
    caught_by: str
    text: str


def read(path: Path) -> Kernel:
    text = path.read_text(encoding="utf-8")
    stated = re.match(r"// sabotage: .+; caught by: (\w+)\n", text)
    assert stated, f"{path.name}: the first line must be '// sabotage: …; caught by: …'"
    return Kernel(path.stem, stated[1], text)


KERNELS = [read(path) for path in sorted((Path(__file__).parent / "broken").glob("*.cu"))]
HONEST = [kernel for kernel in KERNELS if kernel.caught_by == "nothing"]
BROKEN = [kernel for kernel in KERNELS if kernel.caught_by != "nothing"]
BY_LAYER = [kernel for kernel in BROKEN if kernel.caught_by in LAYERS]
BY_REPORT = [kernel for kernel in BROKEN if kernel.caught_by not in LAYERS]


def compiled(kernel: Kernel) -> Binary:
    text = f'{PRELUDE}#line 1 "{kernel.name}.cu"\n{kernel.text}'
    epilogue = host_epilogue(kernel.name, "tilewright::GemmArgs")
    return compile_host(KernelSource(kernel.name, kernel.name, f"{text}\n{epilogue}", f"{kernel.name}.cu"))


def geometry(problem: Problem) -> Grid:
    return Grid((-(-problem.n // 16), -(-problem.m // 16), problem.batch), (16, 16, 1))


def failures(kernel: Kernel, machine: dict[str, str], layer: str) -> list[Check]:
    """The first failing check of `layer`, if there is one."""
    with EmulatorBackend(workers=1, **machine) as backend:
        found = checks(run_on(backend, compiled(kernel), geometry), PROBLEMS, layers=layer)
        return next(([check] for check in found if not check.ok), [])


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine["schedule"])
@pytest.mark.parametrize("kernel", HONEST, ids=lambda kernel: kernel.name)
def test_honest_kernel_passes_every_layer(kernel, machine):
    for layer in LAYERS:
        assert not failures(kernel, machine, layer)


@pytest.mark.parametrize("kernel", BY_LAYER, ids=lambda kernel: kernel.name)
def test_broken_kernel_is_rejected_by_its_layer(kernel):
    assert any(failures(kernel, machine, kernel.caught_by) for machine in MACHINES)


@pytest.mark.parametrize("kernel", BY_REPORT, ids=lambda kernel: kernel.name)
def test_broken_kernel_is_reported_while_it_runs(kernel):
    with pytest.raises(getattr(errors, kernel.caught_by)) as caught:
        for machine in MACHINES:
            failures(kernel, machine, "integer")
    assert issubclass(caught.type, errors.LaunchFailed)
    assert f"{kernel.name}.cu:" in str(caught.value)


@pytest.mark.parametrize(
    "kernel",
    [kernel for kernel in BY_LAYER if kernel.caught_by in ("bound", "special", "determinism")],
    ids=lambda kernel: kernel.name,
)
def test_integers_alone_do_not_see_what_the_other_layers_are_for(kernel):
    assert not failures(kernel, MACHINES[0], "integer")


def test_every_kind_of_catch_has_a_kernel():
    assert {kernel.caught_by for kernel in KERNELS} == {*LAYERS, "nothing", "OutOfBounds", "Deadlock"}
