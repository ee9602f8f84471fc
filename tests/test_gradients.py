"""Gradients of a product, against what a change of one element changes: exact, since a product is linear in each."""

import numpy as np
import pytest

from tilewright.api.torch.gradients import gradient_of_a, gradient_of_b, summed_to

SHAPES = [
    ((3, 4), (4, 2)),
    ((4,), (4, 2)),
    ((3, 4), (4,)),
    ((4,), (4,)),
    ((2, 3, 4), (4, 2)),
    ((2, 3, 4), (4,)),
    ((4,), (2, 4, 3)),
    ((3, 4), (2, 4, 2)),
    ((2, 1, 3, 4), (1, 3, 4, 2)),
    ((2, 3, 4), (1, 4, 2)),
    ((1, 3, 4), (4, 2)),
    ((0, 4), (4, 2)),
    ((2, 0, 4), (4, 2)),
]


def by_differences(x, product, grad):
    """What adding 1 to each element of `x` adds to the weighted sum of the product."""
    found, before = np.zeros(x.shape), (product(x) * grad).sum()
    for index in np.ndindex(x.shape):
        moved = x.copy()
        moved[index] += 1
        found[index] = (product(moved) * grad).sum() - before
    return found


@pytest.mark.parametrize(("a", "b"), SHAPES)
def test_gradients_are_what_a_change_of_an_element_changes(a, b):
    rng = np.random.default_rng(3)
    a, b = (rng.integers(-4, 5, shape).astype(float) for shape in (a, b))
    grad = rng.integers(-4, 5, np.matmul(a, b).shape).astype(float)
    for_a, for_b = gradient_of_a(np.matmul, grad, a, b), gradient_of_b(np.matmul, grad, a, b)
    assert for_a.shape == a.shape and np.array_equal(for_a, by_differences(a, lambda x: x @ b, grad))
    assert for_b.shape == b.shape and np.array_equal(for_b, by_differences(b, lambda x: a @ x, grad))


def test_a_batch_of_one_matrix_is_one_product():
    seen = []

    def product(x, y):
        seen.append((x.shape, y.shape))
        return np.matmul(x, y)

    gradient_of_b(product, np.ones((5, 6, 2)), np.ones((5, 6, 4)), np.ones((4, 2)))
    assert seen == [((4, 30), (30, 2))]


@pytest.mark.parametrize("shape", [(), (3,), (1,), (2, 1), (1, 3), (2, 3), (4, 2, 3), (1, 1, 1)])
def test_a_sum_undoes_a_broadcast(shape):
    full = np.arange(24.0).reshape(4, 2, 3)
    assert np.array_equal(summed_to(full, shape), by_differences(np.zeros(shape), lambda x: x + 0 * full, full))
