"""The driver's launch structures as ctypes has them, against the bindings' own."""

import ctypes

import pytest

from tilewright.problem import Problem
from tilewright.run.args import GemmArgs, TmaArgs, gemm_args
from tilewright.run.cuda import _launch_config
from tilewright.run.prepared import LaunchAttribute, PreparedLaunch, launch_config
from tilewright.run.protocol import Grid

CONTEXT = 0x77


@pytest.mark.parametrize(
    "grid",
    [
        Grid((1, 2, 3), (32, 4, 1)),
        Grid((7, 5, 1), (384, 1, 1), dynamic_smem_bytes=196_608, cluster=(2, 1, 1)),
        Grid((8, 1, 1), (128, 1, 1), cluster=(4, 2, 1), dependent=True),
    ],
)
def test_the_launch_structure_is_the_bindings(grid):
    ours, theirs = launch_config(grid), _launch_config(grid, 0x1234)
    ours.stream = 0x1234
    fields = [name for name, _ in type(ours)._fields_]
    assert ctypes.sizeof(ours) == 56 and ctypes.sizeof(LaunchAttribute) == 72
    seen = type(ours).from_buffer_copy(ctypes.string_at(int(theirs.getPtr()), 56))
    assert [getattr(seen, x) for x in fields if x != "attributes"] == [
        getattr(ours, x) for x in fields if x != "attributes"
    ]
    for index in range(seen.attribute_count):
        assert seen.attributes[index].id == ours.attributes[index].id
        used = 3 if seen.attributes[index].id == 4 else 1
        assert seen.attributes[index].value[:used] == ours.attributes[index].value[:used]


class Driver:
    """Records what a launch was given."""

    def __init__(self):
        self.seen, self.moved = [], []

    def cuCtxGetCurrent(self, pointer):
        pointer._obj.value = CONTEXT
        return 0

    def cuLaunchKernelEx(self, config, function, pointers, extra):
        args = TmaArgs.from_address(pointers._obj[0])
        self.seen.append((args.a, args.b, args.c, args.d, args.bias, args.alpha, config._obj.stream or 0))
        return 0

    def cuTensorMapReplaceAddress(self, encoded, address):
        assert ctypes.addressof(encoded._obj) % 64 == 0, "the driver wants its maps aligned"
        self.moved.append((encoded._obj.words[0], address.value))
        return 0


def test_addresses_are_patched_and_the_rest_stays():
    driver = Driver()
    args = gemm_args(Problem(m=4, n=4, k=4, alpha=2.0), a=1, b=2, c=3, d=4)
    launch = PreparedLaunch(1, CONTEXT, Grid((1, 1, 1), (32, 1, 1)), args, driver=driver)
    launch(16, 32, 48, 64, 80, 0)
    launch(17, 33, 49, 65, 81, 7)
    assert driver.seen == [(16, 32, 48, 64, 80, 2.0, 0), (17, 33, 49, 65, 81, 2.0, 7)]
    assert (args.a, args.b) == (1, 2), "the caller's struct is not the launch's"


def test_tensor_maps_follow_their_operands():
    driver, args = Driver(), TmaArgs(a=256, b=512, d=768)
    args.map_a.words[0], args.map_d.words[0] = 256, 768
    launch = PreparedLaunch(1, CONTEXT, Grid((1, 1, 1), (32, 1, 1)), args, maps=("a", "d"), driver=driver)
    launch(256, 512, 0, 768, 0, 0)
    assert not driver.moved
    launch(1024, 512, 0, 768, 0, 0)
    launch(1024, 2048, 0, 4096, 0, 0)
    assert driver.moved == [(256, 1024), (768, 4096)]


def test_both_structs_fit():
    for kind in (GemmArgs, TmaArgs):
        launch = PreparedLaunch(1, CONTEXT, Grid((1, 1, 1), (32, 1, 1)), kind(m=5), driver=Driver())
        assert launch._args.m == 5
