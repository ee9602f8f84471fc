"""Random products of torch tensors on a GPU, integer-exact: those of tests/test_api_random.py, and many more.

`pytest -m "gpu and slow" tests/gpu/test_random.py` runs 20 000.
"""

import pytest

import tilewright as tw
from random_problems import SIZES, random_problem, run_random

pytestmark = pytest.mark.gpu
LARGER = (1, 3, 16, 47, 64, 65, 128, 129, 200, 256)
CHUNK, CHUNKS = 1000, 20


def run_on_gpu(seeds):
    torch = pytest.importorskip("torch")
    for seed in seeds:
        problem = random_problem(seed, sizes=LARGER if seed % 4 == 0 else SIZES, backwards=False)
        run_random(tw.gemm, problem, lambda host: torch.from_numpy(host).cuda(), lambda tensor: tensor.cpu().numpy())


def test_random_products():
    run_on_gpu(range(200))


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_twenty_thousand_random_products(chunk):
    run_on_gpu(range(chunk * CHUNK, (chunk + 1) * CHUNK))
