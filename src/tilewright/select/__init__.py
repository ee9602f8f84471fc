"""Which rung and config multiply a problem on a card, and why. It runs and compiles nothing."""

from tilewright.select.choice import Choice, choose

__all__ = ["Choice", "choose"]
