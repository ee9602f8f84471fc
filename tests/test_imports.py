"""What a product loads: nothing of tuning, measuring, verifying or the command line."""

import json
import subprocess
import sys

import pytest

UNWANTED = ("tilewright.tune", "tilewright.measure", "tilewright.verify", "tilewright.lab", "tilewright.report")
PACKAGES = ("typer", "rich", "sqlite3")
TOUCHED = "import tilewright as tw; tw.matmul"
MULTIPLIED = """
import numpy as np, tilewright as tw
a = np.ones((8, 8), np.float32)
assert (tw.matmul(a, a, backend="emulator") == 8).all()
assert (tw.gemm(a, a, rung="k02", backend="emulator") == 8).all()
"""


def loaded_by(code):
    """The modules that a fresh process has after `code`."""
    shown = f"{code}\nimport json, sys; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", shown], capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("code", [TOUCHED, MULTIPLIED], ids=["matmul is touched", "NumPy arrays are multiplied"])
def test_a_product_loads_no_tuning_measuring_or_verification(code):
    loaded = loaded_by(code)
    readers = ("tilewright.tune", "tilewright.tune.place", "tilewright.tune.reading", "tilewright.tune.rows")
    known = (*readers, "tilewright.tune.context", "tilewright.tune.trial")
    found = [name for name in loaded if name.startswith(UNWANTED) and name not in known]
    assert not found
    assert not [name for name in PACKAGES if name in loaded]


def test_importing_the_package_makes_no_module_of_the_call():
    assert not [name for name in loaded_by("import tilewright") if name.startswith("tilewright.api")]
