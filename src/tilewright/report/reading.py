"""Records from files and folders, each with the name it is told by. Reads and checks; draws nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tilewright.errors import InvalidInput
from tilewright.record import RECORDS_DIR, Record, read_record


@dataclass(frozen=True, slots=True)
class Source:
    """A record, the name of its file, and an identifier that no other record of the same report has."""

    name: str
    ident: str
    record: Record

    @property
    def device(self) -> str:
        """The card's name, or where else the record was made."""
        environment = self.record.environment
        return str(environment.get("device", {}).get("name") or environment.get("backend") or "no device")


def read_sources(paths: Sequence[Path]) -> list[Source]:
    """Every record in the files, and in the folders with what lies below them; without paths the package's own.

    Raises InvalidInput for what cannot be read or is no record, and where there is none.
    """
    files = [file for path in paths or [RECORDS_DIR] for file in _files(path)]
    if not files:
        named = ", ".join(str(path) for path in paths)
        raise InvalidInput(f"{named}: no .json file there; name a record, as `tilewright ladder --json` prints it")
    return [Source(file.stem, f"r{index}", read_record(file)) for index, file in enumerate(files)]


def _files(path: Path) -> Iterable[Path]:
    return sorted(path.rglob("*.json")) if path.is_dir() else [path]
