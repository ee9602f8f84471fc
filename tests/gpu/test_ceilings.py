"""Ceilings on a card: every thread's result, at the sizes that are timed. Run with `pytest -m gpu`."""

import pytest

from tilewright.lab.ceilings import card_of
from tilewright.measure.ceilings.check import allocate, check
from tilewright.measure.ceilings.work import works
from tilewright.run.cuda import CudaBackend

pytestmark = pytest.mark.gpu


def test_every_kernel_does_all_of_its_work():
    with CudaBackend() as gpu:
        todo = works(card_of(gpu))
        check(gpu, todo, allocate(gpu, todo))
