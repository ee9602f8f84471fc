"""Sizes near 2^31 on a card with the memory for them."""

import pytest

from tilewright.declare import all_rungs, rung_config
from tilewright.problem import Problem
from tilewright.run.cuda import CudaBackend
from tilewright.run.kernel import bind

pytestmark = pytest.mark.gpu
COLS = 2**31 - 8


@pytest.mark.parametrize("layout", ["NT", "NN"])
@pytest.mark.parametrize("query", ["t05", "t06", "t07", "t08"])
def test_a_short_product_of_two_billion_columns_is_written_to_its_end(query, layout):
    """8×(2^31 - 8)×8: 34 GB each of B and D."""
    torch = pytest.importorskip("torch")
    if torch.cuda.mem_get_info()[0] < 75e9:
        pytest.skip("needs 75 GB of free memory")
    config = rung_config(all_rungs().find(query))
    problem = Problem(m=8, n=COLS, k=8, layout=layout, dtype="bfloat16", out_dtype="bfloat16")
    config.require_problem(problem)
    a = torch.randint(-2, 3, (8, 8), device="cuda").to(torch.bfloat16)
    try:
        b = torch.empty(problem.stored_shape("b"), dtype=torch.bfloat16, device="cuda").fill_(1)
        d = torch.empty((8, COLS), dtype=torch.bfloat16, device="cuda").fill_(float("nan"))
    except torch.OutOfMemoryError:
        pytest.skip("another process took the memory")
    along_k = b if layout == "NT" else b.T
    places = [slice(at, at + 2**16) for at in (0, 2**30 - 2**15, 2**31 - 2**17, COLS - 2**16)]
    for place in places:
        along_k[place] = torch.randint(-2, 3, (2**16, 8), device="cuda").to(torch.bfloat16)
    torch.cuda.synchronize()
    with CudaBackend() as gpu:
        bind(config, problem, gpu)(a=a.data_ptr(), b=b.data_ptr(), d=d.data_ptr())
        gpu.synchronize()
    for place in places:
        assert torch.equal(d[:, place].float(), a.float() @ along_k[place].float().T)
    for first in range(0, COLS, 2**28):
        assert not d[:, first : first + 2**28].isnan().any()
