"""Where the device headers lie, and what of them a text includes.

A process reads each folder of headers once. What a text includes is found without a preprocessor: everything named by
an include in it, whichever `#if` it stands under. Where an include names no file by its text, all headers count.
"""

from __future__ import annotations

import functools
import posixpath
import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from tilewright.compile.cache import content_key

INCLUDE_DIR = Path(__file__).resolve().parent.parent / "rungs" / "include"
EMULATOR_DIR = Path(__file__).resolve().parent.parent / "emulator" / "runtime"
SUFFIXES = {".cuh", ".hpp", ".cpp"}
_NAMED = re.compile(r'^[ \t]*#[ \t]*include[ \t]*["<]([^">\n]+)[">]', re.MULTILINE)
_ANY = re.compile(r"(?:#|%:|\?\?=)(?:[ \t]|/\*.*?\*/)*(?:include|import|embed)|__has_(?:include|embed)", re.DOTALL)
_MEMO = 1024


def tree_text(root: Path) -> tuple[str, ...]:
    """Every file under `root` as (relative name, text, name, text, …), in a fixed order."""
    return tuple(part for pair in _tree(root).items() for part in pair)


@functools.cache
def _tree(root: Path) -> Mapping[str, str]:
    return MappingProxyType(_read(root))


def _read(root: Path) -> dict[str, str]:
    names = sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.suffix in SUFFIXES)
    return {name: (root / name).read_text(encoding="utf-8") for name in names}


def read_again(root: Path) -> None:
    """Take the files under `root` as they are now, for a compiler that reads them itself."""
    if _tree(root) != _read(root):
        for memo in (_tree, _included, _digest):
            memo.cache_clear()


def included(text: str, *roots: Path) -> Mapping[str, str]:
    """The headers under `roots` that `text` includes, and they in turn: name → text."""
    return _included(_names(text), roots)


def included_digest(text: str, *roots: Path) -> str:
    """What stands for `included` in a key."""
    return _digest(_names(text), roots)


@functools.lru_cache(_MEMO)
def _names(text: str) -> tuple[str, ...] | None:
    """What `text` itself includes; None where it has an include that isn't spelt as one line with one name."""
    named = _NAMED.findall(text)
    if len(_ANY.findall(text.replace("\\\n", ""))) > len(named):
        return None
    return tuple(sorted({posixpath.normpath(name) for name in named}))


@functools.lru_cache(_MEMO)
def _included(names: tuple[str, ...] | None, roots: tuple[Path, ...]) -> Mapping[str, str]:
    every = {name: text for root in roots for name, text in _tree(root).items()}
    found: set[str] = set()
    waiting = list(every if names is None else names)
    while waiting:
        name = waiting.pop()
        if name not in every or name in found:
            continue
        found.add(name)
        inner = _names(every[name])
        if inner is None:
            return MappingProxyType(every)
        beside = posixpath.dirname(name)
        waiting += [*inner, *(posixpath.normpath(posixpath.join(beside, each)) for each in inner)]
    return MappingProxyType({name: every[name] for name in sorted(found)})


@functools.lru_cache(_MEMO)
def _digest(names: tuple[str, ...] | None, roots: tuple[Path, ...]) -> str:
    return content_key(part for pair in _included(names, roots).items() for part in pair)
