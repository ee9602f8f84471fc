"""The check of large products on the device itself: every element, at the cost of reading the operands."""

from tilewright.verify.freivalds.check import GUARD, FreivaldsCheck, Placed, integers
from tilewright.verify.freivalds.kernels import Filling, Kernels, Matrix

__all__ = ["GUARD", "Filling", "FreivaldsCheck", "Kernels", "Matrix", "Placed", "integers"]
