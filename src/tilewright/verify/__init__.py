"""Whether a kernel computes the product: reference, acceptance, five layers of checks, the algebraic certificate.

The core takes a callable that runs a product and knows no rung, compiler or backend; `device` makes such a
callable from a backend.
"""

from tilewright.verify.accept import Judgement, bound, judge, judge_exact
from tilewright.verify.certificate import FieldRun, certificate
from tilewright.verify.device import run_on
from tilewright.verify.host import numpy_run
from tilewright.verify.layers import LAYERS, Check, Verdict, checks, verify
from tilewright.verify.operands import Operands, Result, Run, make_operands
from tilewright.verify.problems import deep_problem, problem_set
from tilewright.verify.reference import Reference, reference

__all__ = [
    "LAYERS",
    "Check",
    "FieldRun",
    "Judgement",
    "Operands",
    "Reference",
    "Result",
    "Run",
    "Verdict",
    "bound",
    "certificate",
    "checks",
    "deep_problem",
    "judge",
    "judge_exact",
    "make_operands",
    "numpy_run",
    "problem_set",
    "reference",
    "run_on",
    "verify",
]
