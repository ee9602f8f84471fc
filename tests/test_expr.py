import contextlib
import subprocess
from dataclasses import fields, is_dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.compile.host import find_compiler
from tilewright.declare import all_rungs
from tilewright.declare.expr import INT64_MAX, Expr, ExpressionError
from tilewright.errors import InvalidDeclaration

NAMES = {"A": 7, "B": 3, "ZERO": 0}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("A + B * 2", 13),
        ("A // B", 2),
        ("A % B", 1),
        ("A - 2 * B - 4", -3),
        ("ceil_div(A, B)", 3),
        ("min(A, B) + max(A, B)", 10),
        ("A == 7 and B == 3", 1),
        ("A == 7 and B == 4", 0),
        ("B == 4 or not A == 8", 1),
        ("1 <= B < A <= 7", 1),
        ("ZERO == 0 or A // ZERO == 1", 1),
    ],
)
def test_value(text, value):
    assert Expr(text).evaluate(NAMES) == value


@pytest.mark.parametrize(
    "text",
    [
        "A ** B",
        "A / B",
        "A if B else 1",
        "f(A)",
        "__import__('os')",
        "A.real",
        "[A]",
        "1.5",
        "True",
        "A is B",
        "A +",
        "min + 1",
    ],
)
def test_outside_the_language(text):
    with pytest.raises(InvalidDeclaration):
        Expr(text).evaluate(NAMES)
    with pytest.raises(InvalidDeclaration):
        _ = Expr(text).cpp


@pytest.mark.parametrize("text", ["A // ZERO", "A % ZERO", "(ZERO - A) // B", "(ZERO - A) % B", "ceil_div(A, ZERO)"])
def test_no_value(text):
    with pytest.raises(ExpressionError, match="divides"):
        Expr(text).evaluate(NAMES)


def test_64_bit_overflow_is_an_error_and_not_a_wrap():
    big = {"A": INT64_MAX, "B": 2}
    with pytest.raises(ExpressionError, match="overflows"):
        Expr("A * B").evaluate(big)
    assert Expr("A - B").evaluate(big) == INT64_MAX - 2


def test_names_leave_functions_out():
    assert Expr("ceil_div(m, BM) * min(K, 4)").names == {"m", "BM", "K"}


def test_every_expression_of_every_rung_is_of_the_language():
    def parse(value):
        if isinstance(value, Expr):
            _ = value.cpp
        elif isinstance(value, tuple):
            for part in value:
                parse(part)
        elif is_dataclass(value):
            for field in fields(value):
                parse(getattr(value, field.name))

    for rung in all_rungs().values():
        parse(rung)


def expressions() -> st.SearchStrategy[str]:
    leaves = st.sampled_from(["A", "B", "C", "1", "2", "17"])
    operators = st.sampled_from(["{} + {}", "{} - {}", "{} * {}", "{} // {}", "{} % {}", "{} < {}", "{} == {}"])
    more = st.sampled_from(["{} and {}", "{} or {}", "ceil_div({}, {})", "min({}, {})", "max({}, {})"])
    return st.recursive(
        leaves,
        lambda inner: st.builds(lambda form, a, b: "(" + form.format(a, b) + ")", operators | more, inner, inner),
        max_leaves=8,
    )


def test_python_and_cpp_agree(tmp_path):
    """One program with many expressions, each asserted to have Python's value."""
    cases: list[tuple[str, int]] = []
    names = {"A": 12, "B": 5, "C": 64}

    @given(expressions())
    def collect(text):
        with contextlib.suppress(ExpressionError):
            cases.append((Expr(text).cpp, Expr(text).evaluate(names)))

    collect()
    assert len(cases) > 50
    constants = "".join(f"constexpr int {name} = {value};\n" for name, value in names.items())
    asserts = "".join(f"static_assert(({cpp}) == ({value}LL));\n" for cpp, value in cases)
    program = tmp_path / "agree.cpp"
    program.write_text(constants + asserts)
    command = [*find_compiler().command, "-std=c++17", "-w", "-fsyntax-only", str(program)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:2000]
