"""Suites of shapes: those of the package, and what a wrong line of one's own is told."""

from __future__ import annotations

import re

import pytest

from tilewright.errors import InvalidInput
from tilewright.suite import parse_suite, read_suite, selected, suite_names


def test_the_packages_suites_hold_every_class_layout_and_source():
    suites = {name: read_suite(name) for name in suite_names()}
    assert {name: len(shapes) for name, shapes in suites.items()} == {
        "deepbench_training": 160,
        "models": 55,
        "suite": 36,
    }
    assert {shape.group for shape in suites["suite"]} == {"square", "ragged", "skinny", "smallk", "deepk", "tall"}
    layouts = [shape.problem.layout for shape in suites["deepbench_training"]]
    assert {layout: layouts.count(layout) for layout in set(layouts)} == {"NN": 77, "NT": 10, "TN": 73}
    assert {(shape.group, shape.source) for shape in suites["models"]} >= {("llama3-70b", "lm_head")}
    assert all(shape.problem.out_dtype == "float32" for shapes in suites.values() for shape in shapes)


def test_a_file_of_ones_own_needs_sizes_alone(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("n, m ,k,dtype\n\n5,3,7,bfloat16\n 1,2,3,\n")
    first, second = read_suite(str(path))
    assert (first.problem.m, first.problem.n, first.problem.k, first.group) == (3, 5, 7, "all")
    assert (first.problem.dtype, first.problem.out_dtype, first.problem.layout) == ("bfloat16", "bfloat16", "NN")
    assert (second.problem.m, second.problem.dtype) == (2, "float32")


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        (["m,n,k", "4,4,4", "4,4,-1"], "x line 3: k='-1': must be an integer of at least 1"),
        (["m,n,k", "4,4.0,4"], "x line 2: n='4.0': must be an integer"),
        (["m,n,k", "4,,4"], "x line 2: n='': must be an integer"),
        (["m,n,k", "4,4"], "x line 2: 2 cells: must be 3"),
        (["m,n,k,layout", "4,4,4,NX"], "x line 2: layout='NX': must be one of NN, NT, TN, TT"),
        (["m,n,k,dtype", "4,4,4,int8"], "x line 2: dtype='int8': not supported"),
        (["m,n,k", "4,4,4294967296"], "x line 2: k=4294967296: must be between"),
        (["m,n"], "x line 1: columns 'm,n': must be m, n, k"),
        (["m,n,k,colour"], "x line 1: columns 'm,n,k,colour': must be m, n, k"),
        (["m,n,k,m"], "x line 1: columns 'm,n,k,m': must be m, n, k"),
        (["m,n,k"], "x: holds no shapes"),
        ([], "x line 1: columns '': must be m, n, k"),
    ],
)
def test_what_is_no_shape_is_told_with_its_line(lines, says):
    with pytest.raises(InvalidInput, match=re.escape(says)):
        parse_suite(lines, "x")


def test_a_suite_that_is_not_there_is_told_with_those_that_are():
    with pytest.raises(InvalidInput, match=r"suite 'suit': cannot be read .*deepbench_training, models, suite"):
        read_suite("suit")


def test_shapes_are_chosen_by_class_number_and_type():
    shapes = read_suite("suite")
    chosen = selected(shapes, groups=["tall", "smallk"], dtype="bfloat16", limit=4)
    assert [shape.group for shape in chosen] == ["smallk", "smallk", "smallk", "tall"]
    assert {(shape.problem.dtype, shape.problem.out_dtype) for shape in chosen} == {("bfloat16", "bfloat16")}
    assert selected(shapes, dtype="tfloat32", limit=1)[0].problem.out_dtype == "float32"
    with pytest.raises(InvalidInput, match="class 'flat': not in this suite; there are square, ragged"):
        selected(shapes, groups=["flat"])
    with pytest.raises(InvalidInput, match="limit=0"):
        selected(shapes, limit=0)
