"""TMA, wgmma, stmatrix and setmaxnreg on a GPU: the kernels and the results that the emulator's tests have."""

import pytest

from hopper_probe import (
    BOX_DTYPES,
    BOX_PLACES,
    PRODUCT_CASES,
    STORE_PLACES,
    STORED_MATRICES,
    check_box,
    check_product,
    check_rounding,
    check_stored_matrices,
    hopper_kernel,
    hopper_source,
    pipeline_result,
)

pytestmark = pytest.mark.gpu


@pytest.fixture
def gpu():
    from tilewright.run.cuda import CudaBackend

    with CudaBackend() as device:
        if device.arch.name != "sm_90a":
            pytest.skip(f"needs sm_90a, this is {device.arch.name}")
        yield device


def compiled(device, source):
    from tilewright.compile.nvrtc import compile_cubin

    return compile_cubin(source, device.arch)


@pytest.mark.parametrize("load", BOX_PLACES)
@pytest.mark.parametrize("span_bytes", BOX_DTYPES)
def test_a_box_is_swizzled_filled_with_zeros_and_clipped(gpu, span_bytes, load):
    stores = list(STORE_PLACES.values())
    store_at = stores[list(BOX_PLACES).index(load) % len(stores)]
    check_box(gpu, compiled(gpu, hopper_kernel("box")), span_bytes, BOX_PLACES[load], store_at)


def test_elements_of_a_tf32_map_are_rounded_as_they_come(gpu):
    check_rounding(gpu, compiled(gpu, hopper_kernel("box")))


@pytest.mark.parametrize("case", PRODUCT_CASES)
def test_a_product_is_exact_in_every_layout_and_swizzle(gpu, case):
    check_product(gpu, compiled(gpu, hopper_kernel("product", define=f"CASE {case}")), case)


def test_a_producer_feeds_two_consumers_and_results_leave_by_tma(gpu):
    got, expected = pipeline_result(gpu, compiled(gpu, hopper_kernel("warp_specialised")))
    assert (got == expected).all()


def test_stmatrix_puts_fragments_where_lanes_point(gpu):
    check_stored_matrices(gpu, compiled(gpu, hopper_source(STORED_MATRICES, 32)))
