"""Suites of problems: lists of shapes in CSV, with a class, a layout and an element type.

Owns the columns, the suites that come with the package, in `shapes/`, and the reading of anyone's own. What is done
with the shapes is not known here.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tilewright.errors import InvalidInput, InvalidProblem
from tilewright.problem import Problem, storage_dtype

SHAPES_DIR = Path(__file__).resolve().parent / "shapes"
SIZES = ("m", "n", "k")
DEFAULTS = {"class": "all", "layout": "NN", "dtype": "float32", "source": ""}
COLUMNS = ("class", *SIZES, "layout", "dtype", "source")


@dataclass(frozen=True, slots=True)
class Shape:
    """One product of a suite: its problem, the class whose mean it counts in, and where it is from."""

    problem: Problem
    group: str
    source: str = ""

    def with_dtype(self, dtype: str) -> Shape:
        """The same product of other elements, the result in their type."""
        problem = self.problem
        changed = Problem(
            m=problem.m, n=problem.n, k=problem.k, layout=problem.layout, dtype=dtype, out_dtype=storage_dtype(dtype)
        )
        return replace(self, problem=changed)


def suite_names() -> list[str]:
    """The suites that come with the package."""
    return sorted(path.stem for path in SHAPES_DIR.glob("*.csv"))


def read_suite(name: str) -> list[Shape]:
    """The shapes of a packaged suite by its name, or of a CSV file by its path.

    Raises InvalidInput for a file that isn't there or a line that is no shape, with its number, the value, the rule
    and the fix.
    """
    path = SHAPES_DIR / f"{name}.csv"
    if name not in suite_names():
        path = Path(name)
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, ValueError) as error:
        raise InvalidInput(
            f"suite {name!r}: cannot be read ({getattr(error, 'strerror', None) or error}); name a CSV file or one of "
            f"{', '.join(suite_names())}"
        ) from error
    return parse_suite(lines, path.name)


def parse_suite(lines: Sequence[str], name: str) -> list[Shape]:
    """The shapes of a CSV's lines; `name` is what errors call it. Raises InvalidInput."""
    reader = csv.reader(lines)
    header = [column.strip() for column in next(reader, [])]
    unknown = [column for column in header if column not in COLUMNS]
    missing = [column for column in SIZES if column not in header]
    if unknown or missing or len(set(header)) < len(header):
        raise InvalidInput(
            f"{name} line 1: columns {','.join(header)!r}: must be m, n, k and any of "
            f"{', '.join(DEFAULTS)}, once each; write {','.join(COLUMNS)}"
        )
    shapes = []
    for cells in reader:
        where = f"{name} line {reader.line_num}"
        if not any(cell.strip() for cell in cells):
            continue
        if len(cells) != len(header):
            raise InvalidInput(f"{where}: {len(cells)} cells: must be {len(header)}, as the first line names them")
        given = {column: cell.strip() for column, cell in zip(header, cells, strict=True)}
        shapes.append(_shape({**DEFAULTS, **{column: cell for column, cell in given.items() if cell}}, where))
    if not shapes:
        raise InvalidInput(f"{name}: holds no shapes; add a line such as 4096,4096,4096 under m,n,k")
    return shapes


def _shape(cells: dict[str, str], where: str) -> Shape:
    sizes = {}
    for column in SIZES:
        text = cells.get(column, "")
        if not text.isdecimal() or int(text) < 1:
            raise InvalidInput(f"{where}: {column}={text!r}: must be an integer of at least 1, written in digits")
        sizes[column] = int(text)
    dtype = cells["dtype"]
    try:
        problem = Problem(
            m=sizes["m"],
            n=sizes["n"],
            k=sizes["k"],
            layout=cells["layout"],
            dtype=dtype,
            out_dtype=storage_dtype(dtype),
        )
    except InvalidProblem as error:
        raise InvalidInput(f"{where}: {error}") from error
    return Shape(problem, cells["class"], cells["source"])


def selected(
    shapes: Iterable[Shape], *, groups: Sequence[str] = (), dtype: str | None = None, limit: int | None = None
) -> list[Shape]:
    """Those of the classes named (none: all), of another element type where one is named, the first `limit` of them.

    Raises InvalidInput where nothing is left.
    """
    every = list(shapes)
    known = list(dict.fromkeys(shape.group for shape in every))
    for group in groups:
        if group not in known:
            raise InvalidInput(f"class {group!r}: not in this suite; there are {', '.join(known)}")
    if limit is not None and limit < 1:
        raise InvalidInput(f"limit={limit}: must be at least 1; leave it out for the whole suite")
    chosen = [shape for shape in every if not groups or shape.group in groups][:limit]
    return [shape if dtype is None else shape.with_dtype(dtype) for shape in chosen]
