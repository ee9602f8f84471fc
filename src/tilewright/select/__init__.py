"""Which rung and config multiply a problem on a card, and why. It runs and compiles nothing."""

from tilewright.select.choice import Choice, choose
from tilewright.select.mode import autotune_mode

__all__ = ["Choice", "autotune_mode", "choose"]
