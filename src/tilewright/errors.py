"""Every failure tilewright raises, as one tree.

    TilewrightError
    ├── InvalidInput (ValueError)
    │   ├── InvalidDeclaration   a rung's own declaration is inconsistent
    │   ├── InvalidConfig        a config breaks a rule of its rung or architecture
    │   │   └── Unsupported      the architecture lacks a feature that the kernel is made of
    │   ├── InvalidProblem       sizes, strides, dtypes or operands that cannot be multiplied
    │   └── UnknownName          no such rung, architecture or parameter
    ├── CompileFailed (RuntimeError)     the compiler's own message, with its line
    ├── LaunchFailed (RuntimeError)      the kernel started and did not finish
    │   ├── OutOfBounds          an access outside its array
    │   ├── Deadlock             threads wait for what cannot come
    │   └── TimedOut             no end within the time limit
    ├── WrongResult (RuntimeError)       finished, and is not the product
    └── Missing (RuntimeError)           something this machine lacks, and how to get it
        ├── NoDevice             no usable GPU or driver
        └── NoCompiler           no C++ compiler for the emulator

`kind` is the class name; records store it, so a failure is a result and not only an event.
This module imports nothing, so that every other one may import it.
"""


class TilewrightError(Exception):
    """Base of every error raised on purpose by this package."""

    @property
    def kind(self) -> str:
        """The failure's kind as records spell it: the class name."""
        return type(self).__name__


class InvalidInput(TilewrightError, ValueError):
    """What was asked for cannot be; found before anything is compiled or launched."""


class InvalidDeclaration(InvalidInput):
    """A rung's declaration contradicts itself or another rung's."""


class InvalidConfig(InvalidInput):
    """A config breaks a rule; the message names value, rule, reason and nearest valid config."""


class Unsupported(InvalidConfig):
    """A kernel is made of instructions that the architecture doesn't have; no config of it would run there."""


class InvalidProblem(InvalidInput):
    """Sizes, strides, dtypes or operands that no launch can serve."""


class UnknownName(InvalidInput):
    """A rung, architecture or parameter that does not exist."""


class CompileFailed(TilewrightError, RuntimeError):
    """A compiler refused the source. `log` is its own message."""

    def __init__(self, message: str, log: str = "") -> None:
        super().__init__(message)
        self.log = log


class LaunchFailed(TilewrightError, RuntimeError):
    """A kernel was launched and did not finish."""


class OutOfBounds(LaunchFailed):
    """A kernel accessed memory outside its array."""


class Deadlock(LaunchFailed):
    """Every live thread of a CTA waits."""


class TimedOut(LaunchFailed):
    """A kernel did not end within the time limit."""


class WrongResult(TilewrightError, RuntimeError):
    """A kernel finished with something else than the product."""


class Missing(TilewrightError, RuntimeError):
    """This machine lacks something; the message says how to get it."""


class NoDevice(Missing):
    """No GPU that can be used, or no driver for it."""


class NoCompiler(Missing):
    """No C++ compiler, which the emulator needs."""
