"""The five layers of verification, over any callable that runs a product.

    integer       exact on integer data, at every problem: indexing, tails, strides, scales, split-K
    bound         the error bound on zero-mean, positive and wide-range data
    probe         data that betray TF32, 16-bit accumulators and 16-bit partial sums
    special       alpha = 0 and beta = 0 rules, NaN and infinities, NaN in padding, D in place of C
    determinism   the same bits again, also over other old contents of D

Every launch of every layer starts from a poisoned D and must leave the inputs, row padding and guard bands as they
were. Owns what is launched and what is said about it; arrays, bounds and the reference are its neighbours'.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from tilewright.errors import UnknownName, WrongResult
from tilewright.problem import Problem
from tilewright.verify.accept import MODE_OF, Mode, describe, get_mode, judge, judge_exact
from tilewright.verify.operands import (
    FINITE_POISON,
    PROBES,
    Operands,
    Result,
    Run,
    bits,
    data_mask,
    front_guard,
    is_exact_scale,
    logical_view,
    make_operands,
)
from tilewright.verify.reference import Reference, reference

ROUNDING_ALPHA, ROUNDING_BETA = 1.25, -0.75


@dataclass(frozen=True, slots=True)
class Check:
    """One launch and what came of it. `worst_ratio` is its largest error in units of the accepted one."""

    layer: str
    problem: Problem
    data: str
    ok: bool
    detail: str
    worst_ratio: float = 0.0
    suspect: bool = False

    def __str__(self) -> str:
        """The check in one line: where it looked and what it found."""
        p = self.problem
        return f"{self.layer}: {p}, alpha {p.alpha:g}, beta {p.beta:g}, {self.data}: {self.detail}"


@dataclass(frozen=True, slots=True)
class Case:
    """One launch to be checked: operands with their reference, and how the result is judged. Serves many kernels."""

    layer: str
    operands: Operands
    expected: Reference
    mode: str
    exact: bool


@dataclass(frozen=True, slots=True)
class Verdict:
    """All checks of one kernel, in the order they ran."""

    checks: tuple[Check, ...]

    @property
    def ok(self) -> bool:
        """Whether there were checks and each held. A suspect one holds."""
        return bool(self.checks) and all(check.ok for check in self.checks)

    @property
    def suspects(self) -> tuple[Check, ...]:
        """Checks beyond the usual error and within the worst case."""
        return tuple(check for check in self.checks if check.suspect)

    @property
    def failed(self) -> tuple[Check, ...]:
        """Checks that did not hold."""
        return tuple(check for check in self.checks if not check.ok)

    @property
    def worst_ratio(self) -> float:
        """The largest error of any check, in units of the accepted one."""
        return max((check.worst_ratio for check in self.checks), default=0.0)

    def raise_if_wrong(self) -> None:
        """Raise WrongResult naming the first failing check, if there is one or nothing was checked."""
        if not self.checks:
            raise WrongResult("nothing was checked; give verify() at least one problem and layer")
        if self.failed:
            raise WrongResult(f"{self.failed[0]} ({len(self.failed)} of {len(self.checks)} checks failed)")


def verify(
    run: Run, problems: Iterable[Problem], *, layers: str | Iterable[str] = "all", mode: str | None = None
) -> Verdict:
    """Check `run` by the named layers ("all", or names in LAYERS) and keep every check.

    The integer layer runs every problem; the others take the deepest and the largest of them and set alpha and beta
    themselves. `mode` left out is that of each problem's dtype. Raises UnknownName for a layer or mode; what `run`
    raises (LaunchFailed) passes through.
    """
    return Verdict(tuple(checks(run, problems, layers=layers, mode=mode)))


def checks(
    run: Run, problems: Iterable[Problem], *, layers: str | Iterable[str] = "all", mode: str | None = None
) -> Iterator[Check]:
    """The checks of `verify` one by one, each made when it is asked for. Same arguments and errors."""
    names = tuple(LAYERS) if layers == "all" else (layers,) if isinstance(layers, str) else tuple(layers)
    for name in names:
        if name not in LAYERS:
            raise UnknownName(f"layer {name!r}: no such layer; there are all, {', '.join(LAYERS)}")
    chosen = list(problems)
    if mode is not None:
        get_mode(mode)
    for name in names if chosen else ():
        yield from LAYERS[name](run, chosen, mode)


def integer(run: Run, problems: list[Problem], mode: str | None) -> Iterator[Check]:
    """Layer 1. The float64 reference of integer data is exact, so equality is asked for."""
    for seed, problem in enumerate(problems):
        exact = _with_exact_scales(problem)
        yield check_case(run, make_case("integer", make_operands(exact, "integer", seed=seed, mode=mode), mode))


def bound(run: Run, problems: list[Problem], mode: str | None) -> Iterator[Check]:
    """Layer 2, plain and with alpha and beta that round."""
    for problem in _representatives(problems):
        for alpha, beta in ((1.0, 0.0), (ROUNDING_ALPHA, ROUNDING_BETA)):
            for data in _mode(problem, mode).data:
                operands = make_operands(replace(problem, alpha=alpha, beta=beta), data, mode=mode)
                yield check_case(run, make_case("bound", operands, mode, exact=False))


def probe(run: Run, problems: list[Problem], mode: str | None) -> Iterator[Check]:
    """Layer 3. Probes that need more terms than the deepest problem has are left out."""
    deepest = replace(max(problems, key=lambda p: p.k), alpha=1.0, beta=0.0)
    for data, needs in PROBES.items():
        if deepest.k >= needs.least_k and (_mode(deepest, mode).exact_operands or not needs.needs_exact_operands):
            yield check_case(run, make_case("probe", make_operands(deepest, data, mode=mode), mode))


def special(run: Run, problems: list[Problem], mode: str | None) -> Iterator[Check]:
    """Layer 4. Integer data with NaN and infinities placed, so equality is asked for."""
    largest = max(problems, key=lambda p: p.flops)
    for alpha, beta, unread in ((0.0, 2.0, "ab"), (0.0, 0.0, "abc"), (1.0, 0.0, "c"), (-1.0, -0.0, "c")):
        operands = make_operands(replace(largest, alpha=alpha, beta=beta), "integer", mode=mode)
        for name in unread:
            operands.logical(name)[...] = np.nan
        yield check_case(run, make_case("special", replace(operands, data=f"NaN in all of {unread.upper()}"), mode))
    yield check_case(
        run, make_case("special", _with_specials(make_operands(_unit_scales(largest), "integer", mode=mode)), mode)
    )
    padded = [p for p in problems if any(p.stored_shape(x)[1] < getattr(p, f"ld{x}") for x in "abc")]
    for problem in _representatives(padded or problems):
        operands = make_operands(_unit_scales(problem), "integer", padding=np.nan, mode=mode)
        yield check_case(run, make_case("special", replace(operands, data="integer, NaN next to the data"), mode))
    shared = replace(_unit_scales(largest), ldc=largest.ldd, batch_stride_c=largest.batch_stride_d)
    yield check_case(run, make_case("special", make_operands(shared, "integer", in_place=True, mode=mode), mode))


def determinism(run: Run, problems: list[Problem], mode: str | None) -> Iterator[Check]:
    """Layer 5. Bits, not values: nothing about rounding may change between launches of one binary."""
    problem = replace(max(problems, key=lambda p: p.flops), alpha=ROUNDING_ALPHA, beta=ROUNDING_BETA)
    operands = make_operands(problem, "zero_mean", mode=mode)
    first = logical_view(problem, "d", run(problem, operands).d)
    other = make_operands(problem, "zero_mean", poison=FINITE_POISON, mode=mode)
    for again, what in ((operands, "again"), (other, "over other old contents of D")):
        differ = bits(first) != bits(logical_view(problem, "d", run(problem, again).d))
        ok = not differ.any()
        detail = f"same bits {what}" if ok else f"other bits {what}: {describe(differ)} differ"
        yield Check("determinism", problem, operands.data, ok, detail, 0.0 if ok else math.inf)


LAYERS: dict[str, Callable[[Run, list[Problem], str | None], Iterator[Check]]] = {
    layer.__name__: layer for layer in (integer, bound, probe, special, determinism)
}


def make_case(layer: str, operands: Operands, mode: str | None = None, *, exact: bool = True) -> Case:
    """A launch to be checked, its reference computed now: bit for bit where `exact`, else within `mode`'s bound.

    An epilogue that rounds is never exact.
    """
    exact = exact and operands.problem.epilogue.growth == 1.0
    return Case(layer, operands, reference(operands), mode or MODE_OF[operands.problem.dtype], exact)


def check_case(run: Run, case: Case) -> Check:
    """Launch it: first what must be untouched, then what must be written, then the values."""
    operands, problem = case.operands, case.operands.problem
    result = run(problem, operands)
    complaint = damage(operands, result)
    if complaint:
        return Check(case.layer, problem, operands.data, False, complaint, math.inf)
    got = logical_view(problem, "d", result.d)
    if case.exact:
        judgement = judge_exact(got, case.expected.value)
    else:
        terms = problem.k if problem.alpha != 0.0 else 0
        judgement = judge(got, case.expected.value, case.expected.magnitude, mode=case.mode, k=terms)
    return Check(
        case.layer, problem, operands.data, judgement.ok, judgement.message, judgement.worst_ratio, judgement.suspect
    )


def require_right(run: Run, case: Case) -> None:
    """Raise WrongResult unless `run` passes the case; what launching raises."""
    check = check_case(run, case)
    if not check.ok:
        raise WrongResult(str(check))


def damage(operands: Operands, result: Result) -> str:
    """What the launch changed that it may not, or left as it was where it may not, in words; empty when nothing."""
    return _touched(operands, result) or _unwritten(operands, result)


def _touched(operands: Operands, result: Result) -> str:
    """What the launch changed that it may not, in words; empty when nothing."""
    for name in "ab" if operands.in_place else "abc":
        changed = np.flatnonzero(bits(getattr(operands, name)) != bits(getattr(result, name)))
        if len(changed):
            return f"input {name.upper()} was modified: {len(changed)} element(s)"
    outside = ~data_mask(operands.problem, "d")
    changed = np.flatnonzero((bits(operands.d) != bits(result.d)) & outside)
    if len(changed):
        value = result.d[changed[0]]
        where = _outside_place(operands.problem, int(changed[0]))
        return f"wrote outside D: {len(changed)} element(s) of padding or guard changed, first {where} to {value:.9g}"
    return ""


def _outside_place(problem: Problem, flat_index: int) -> str:
    start = flat_index - front_guard(problem)
    return f"{start} elements from D's start (row {start // problem.ldd}, column {start % problem.ldd})"


def _unwritten(operands: Operands, result: Result) -> str:
    """Where D still holds its poison, in words; empty when nowhere."""
    if operands.in_place:
        return ""
    left = bits(logical_view(operands.problem, "d", result.d)) == bits(operands.poison)
    return f"not written, or from D's old contents: {describe(left)} hold what was there before" if left.any() else ""


def _representatives(problems: list[Problem]) -> list[Problem]:
    """The deepest and the largest problem, once if they are one."""
    deepest, largest = max(problems, key=lambda p: p.k), max(problems, key=lambda p: p.flops)
    return [deepest] if deepest == largest else [deepest, largest]


def _mode(problem: Problem, mode: str | None) -> Mode:
    return get_mode(mode or MODE_OF[problem.dtype])


def _unit_scales(problem: Problem) -> Problem:
    return replace(problem, alpha=1.0, beta=1.0)


def _with_exact_scales(problem: Problem) -> Problem:
    """The problem, an alpha or beta under which integers would round replaced by 1."""
    alpha, beta = (x if is_exact_scale(x) else 1.0 for x in (problem.alpha, problem.beta))
    return replace(problem, alpha=alpha, beta=beta)


def _with_specials(operands: Operands) -> Operands:
    """NaN in a row of A (its last k), an infinity in another row, one in a column of B, NaN in one element of C."""
    p = operands.problem
    if p.k:
        operands.logical("a")[:, p.m // 2, p.k - 1] = np.nan
        operands.logical("a")[:, p.m - 1, p.k // 2] = -np.inf
        operands.logical("b")[:, 0, p.n // 3] = np.inf
    operands.logical("c")[:, 0, p.n - 1] = np.nan
    return replace(operands, data="integer with NaN and infinities")
