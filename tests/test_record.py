import json
import math

import pytest

from tilewright.errors import InvalidInput
from tilewright.record import RECORDS_DIR, Ratio, Record, Row, environment, load_records, recorded_best, timed_rows

PROBLEM = {"m": 64, "n": 64, "k": 64}


def test_a_record_survives_json_and_leaves_out_what_is_not_claimed():
    row = Row(rung="k08", problem=PROBLEM, time_us=1.5, ratio_to_baseline=Ratio(0.9, 1.0, 1.1))
    record = Record(command="ladder", environment={"backend": "cuda"}, rows=[row])
    data = json.loads(json.dumps(record.to_json()))
    assert set(data["rows"][0]) == {"rung", "problem", "time_us", "ratio_to_baseline"}
    assert Record.from_json(data) == record


@pytest.mark.parametrize("time_us", [0.0, -1.0, math.nan, math.inf])
def test_a_time_that_is_none_is_refused(time_us):
    with pytest.raises(InvalidInput, match="time_us"):
        Row(rung="k08", problem=PROBLEM, time_us=time_us)


def test_another_schema_is_refused():
    with pytest.raises(InvalidInput, match="schema"):
        Record.from_json({"schema": "other/9", "command": "", "environment": {}, "rows": []})


def test_damaged_records_are_passed_over_and_said_so(tmp_path, capsys):
    (tmp_path / "a.json").write_text("{")
    (tmp_path / "b.json").write_text(json.dumps({"schema": "other"}))
    (tmp_path / "c.json").write_text(json.dumps(Record(command="ladder", environment={}).to_json()))
    assert len(load_records(tmp_path)) == 1
    assert "a.json: not a record" in capsys.readouterr().err


def test_the_best_recorded_row_is_the_largest_verified_problem():
    rows = [
        Row(rung="k08", problem={**PROBLEM, "m": m}, config={"BK": 8}, time_us=1.0, verified=verified)
        for m, verified in ((64, True), (128, True), (256, False))
    ]
    record = Record(command="ladder", environment={"device": {"name": "X"}}, rows=rows)
    found = recorded_best([record], "k08", {"BK": 8})
    assert found.row.problem["m"] == 128 and found.device == "X"
    assert recorded_best([record], "k99", {"BK": 8}) is None
    assert recorded_best([record], "k08", {"BK": 16}) is None, "another config's time is not this one's"


def test_records_that_ship_are_of_this_schema_and_complete():
    paths = list(RECORDS_DIR.glob("*.json"))
    assert len(load_records()) == len(paths) >= 2
    for record in load_records():
        assert {"date", "versions", "commit", "device"} <= set(record.environment)


def test_the_environment_names_versions_and_drops_what_is_none():
    found = environment(device={"name": "X"}, compiler=None)
    assert found["device"] == {"name": "X"} and "compiler" not in found
    assert {"tilewright", "numpy", "nvidia-cuda-nvrtc"} <= set(found["versions"])


def test_times_of_other_modes_than_the_steady_one_stand_for_none():
    row = Row(rung="k08", problem={"m": 4, "n": 4, "k": 4}, time_us=1.0, verified=True)
    steady, sustained = (
        Record(command="ladder", environment={"measurement": {"mode": mode}}, rows=[row])
        for mode in ("steady", "sustained")
    )
    assert [record for record, _ in timed_rows([sustained, steady], "k08")] == [steady]
