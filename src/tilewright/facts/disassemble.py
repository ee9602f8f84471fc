"""From a cubin to its SASS, by nvdisasm, which is an optional extra. Owns the tool and the cache of what it said."""

from __future__ import annotations

import re
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from tilewright.compile import cache as binary_cache
from tilewright.compile.binary import Binary
from tilewright.errors import Missing
from tilewright.facts.sass import Instruction, parse

OPTIONS = ("-c", "-gi")
FIX = "pip install 'tilewright[sass]'"


@cache
def nvdisasm() -> tuple[str, str]:
    """The path of nvdisasm and its version. Raises Missing with what installs it."""
    from cuda.pathfinder import find_nvidia_binary_utility

    path = find_nvidia_binary_utility("nvdisasm")
    if path is None:
        raise Missing(f"nvdisasm is not here, so no instructions can be shown: {FIX}")
    return path, _version(path)


def _version(path: str) -> str:
    said = _run([path, "--version"])
    match = re.search(r"V(\d+\.\d+\.\d+)", said)
    return match[1] if match else said.strip()


def _run(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=120, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Missing(f"{command[0]} cannot be run ({error}): {FIX}") from error
    if done.returncode != 0:
        raise Missing(f"{command[0]} gave up ({done.stderr.strip()}): {FIX}")
    return done.stdout


def disassemble(binary: Binary) -> tuple[Instruction, ...]:
    """The instructions of a cubin's kernel, from the cache where it was disassembled before.

    Raises Missing without an nvdisasm that can read it.
    """
    path, version = nvdisasm()
    key = binary_cache.content_key(("sass", version, *OPTIONS, binary.entry, binary.payload))

    def build(key: str) -> Binary:
        with tempfile.TemporaryDirectory() as folder:
            cubin = Path(folder) / "kernel.cubin"
            cubin.write_bytes(binary.payload)
            text = _run([path, *OPTIONS, str(cubin)])
        return Binary(binary.entry, f"{binary.target} SASS", text.encode(), key, f"nvdisasm {version}")

    text = binary_cache.load_or_build(key, build).payload.decode()
    instructions = parse(text, binary.entry)
    if not instructions:
        raise Missing(f"nvdisasm {version} shows no instruction of {binary.entry} in this cubin: {FIX}")
    return instructions
