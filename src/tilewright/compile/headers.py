"""Where the device headers lie, and their contents for cache keys."""

from __future__ import annotations

from pathlib import Path

INCLUDE_DIR = Path(__file__).resolve().parent.parent / "rungs" / "include"
EMULATOR_DIR = Path(__file__).resolve().parent.parent / "emulator" / "runtime"


def tree_text(root: Path) -> tuple[str, ...]:
    """Every file under `root` as (relative name, text, name, text, …), in a fixed order."""
    names = tuple(sorted(str(p.relative_to(root)) for p in root.rglob("*") if p.suffix in {".cuh", ".hpp", ".cpp"}))
    return tuple(part for name in names for part in (name, (root / name).read_text(encoding="utf-8")))
