"""What the documents show must be true."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tilewright.declare import all_rungs, discover, rung_config
from tilewright.declare.registry import RUNGS_DIR
from tilewright.lab.picture import draw_tiles
from tilewright.lab.verifying import emulator_settings, sweep
from tilewright.record import RECORDS_DIR, load_records
from tilewright.report.lessons import ladder_document
from tilewright.report.tables import ladder_tables, suite_means, suite_tables
from tilewright.verify import Verdict

ROOT = Path(__file__).parent.parent


def section(name: str) -> str:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    return re.search(rf"<!-- {name} -->\n(.*?)\n<!-- /{name} -->", readme, re.DOTALL)[1]


def test_the_rung_in_contributing_is_two_new_files_and_works(tmp_path):
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    diff = re.search(r"```diff\n(.*?)```", text, re.DOTALL)[1]
    assert re.findall(r"^--- (.+)$", diff, re.MULTILINE) == ["/dev/null", "/dev/null"]
    folder = tmp_path / "src/tilewright/rungs"
    shutil.copytree(RUNGS_DIR, folder, ignore=shutil.ignore_patterns("__pycache__"))
    subprocess.run(["git", "apply", "-"], input=diff, text=True, cwd=tmp_path, check=True)
    found = discover(folder)
    assert set(found) - set(all_rungs()) == {"k90_two_columns"}
    config = rung_config(found.find("k90"))
    Verdict(tuple(sweep(config, emulator_settings("default", 0)[0]))).raise_if_wrong()


def test_the_readmes_tables_are_the_records():
    assert section("records") == ladder_tables(load_records())


def test_the_suites_tables_are_the_records():
    text = (ROOT / "docs" / "suites.md").read_text(encoding="utf-8")
    records = load_records(RECORDS_DIR / "suites")
    assert section("means") == suite_means(records, brief=True)
    for name, table in (("means", suite_means), ("suites", suite_tables)):
        (shown,) = re.findall(rf"<!-- {name} -->\n(.*)\n<!-- /{name} -->", text, re.DOTALL)
        assert shown == table(records)


def test_the_ladder_document_is_what_declarations_and_records_say():
    written = (ROOT / "docs" / "ladder.md").read_text(encoding="utf-8")
    assert written == ladder_document(all_rungs(), load_records(), load_records(RECORDS_DIR / "suites"))


def test_the_picture_counts_the_tiles_of_each_level():
    drawn = draw_tiles(rung_config(all_rungs().find("k08")).constants)
    for words in (
        "CTA tile 128×64",
        "= 2×2 warp tiles of 64×32",
        "= 2×2 sub-tiles of 32×16",
        "= 8×4 thread tiles of 4×4",
    ):
        assert words in drawn
    assert drawn.count("■") == 3 and drawn.count("□") == 3 + 3 + 31


@pytest.mark.parametrize("rung", [r for r in all_rungs().values() if r.track == "simt"], ids=lambda r: r.name)
def test_the_readmes_output_has_every_rung_with_its_lesson(rung):
    shown = section("ladder")
    assert re.search(rf"^{rung.name} +✓ exact", shown, re.MULTILINE)
    assert rung.summary in shown


def test_every_record_says_where_it_comes_from():
    for record in load_records():
        assert record.environment["device"]["name"] and record.environment["commit"]
        assert "dirty" not in record.environment["commit"]
        assert all(row.verified for row in record.rows if row.time_us is not None)
