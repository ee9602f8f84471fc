"""Which rung and config multiply a problem on a card, and why. A choice runs and compiles nothing."""

from tilewright.select.choice import Choice, choose
from tilewright.select.first_use import is_first_use, tune_first_use

__all__ = ["Choice", "choose", "is_first_use", "tune_first_use"]
