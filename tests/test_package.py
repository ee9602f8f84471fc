import ctypes
import os
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

import tilewright
from tilewright.compile.headers import EMULATOR_DIR, INCLUDE_DIR
from tilewright.declare import all_rungs
from tilewright.record import RECORDS_DIR
from tilewright.run.args import GemmArgs, TmaArgs

TORCH_PINS = ("torch==2.14.1", "torch==2.11.0")


def python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, **environment}
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, check=False)


def test_every_public_name_is_there():
    for name in tilewright.__all__:
        assert getattr(tilewright, name) is not None
    assert sorted([*tilewright.__all__, "__version__"]) == dir(tilewright)
    assert tilewright.__version__ == metadata.version("tilewright")
    with pytest.raises(AttributeError, match="no attribute 'fast_matmul'"):
        _ = tilewright.fast_matmul


def test_import_loads_no_heavy_module_and_no_cuda():
    heavy = "{'numpy', 'cuda', 'rich', 'typer', 'torch'}"
    code = f"import sys, tilewright; print({{m.split('.')[0] for m in sys.modules}} & {heavy})"
    assert python(code).stdout.strip() == "set()"


def test_cuda_is_not_touched_by_import_so_a_fork_may_use_it():
    code = "import tilewright, tilewright.cli, sys; print('cuda' in {m.split('.')[0] for m in sys.modules})"
    assert python(code).stdout.strip() == "False"


def test_what_kernels_and_emulator_are_built_from_comes_with_the_package():
    assert (INCLUDE_DIR / "tilewright" / "epilogue.cuh").is_file()
    assert (EMULATOR_DIR / "runner.cpp").is_file()
    assert Path(tilewright.__file__).with_name("py.typed").is_file()
    assert list(RECORDS_DIR.glob("*.json"))


def test_kernels_include_our_headers_only_so_no_toolkit_is_needed():
    texts = [rung.source for rung in all_rungs().values()] + [p.read_text() for p in INCLUDE_DIR.rglob("*.cuh")]
    included = {name for text in texts for name in re.findall(r'#include\s+[<"]([^>"]+)', text)}
    assert {name for name in included if not name.startswith("tilewright/")} == {
        *("device.hpp", "half.hpp", "warp_functions.hpp")
    }
    platform = (INCLUDE_DIR / "tilewright" / "platform.cuh").read_text()
    assert platform.index("#else") < platform.index("device.hpp"), "device.hpp is for the host alone"


def test_the_argument_struct_has_the_same_fields_on_both_sides():
    text = (INCLUDE_DIR / "tilewright" / "args.cuh").read_text()
    body = re.sub(r"//.*", "", text[text.index("struct GemmArgs") : text.index("static_assert")])
    declared = [name for line in re.findall(r"[^;{}]+;", body) for name in re.findall(r"(\w+)\s*(?:,|;)", line)]
    mirrored = [name for name, _ in (*GemmArgs._fields_, *TmaArgs._fields_)]
    assert declared == [name for name in mirrored if name != "_padding"]
    assert ctypes.sizeof(GemmArgs) % 8 == 0


@pytest.mark.parametrize("order", [lambda a, b: (a, b), lambda a, b: (b, a)], ids=["torch first", "tilewright first"])
@pytest.mark.parametrize("torch", TORCH_PINS)
def test_dependencies_resolve_beside_torch_and_take_its_nvrtc(torch, order, tmp_path):
    ours = [r for r in metadata.requires("tilewright") or () if "extra ==" not in r]
    lines = [line for group in order([torch], ours) for line in group]
    (tmp_path / "both.in").write_text("\n".join(lines))
    command = [sys.executable, "-m", "uv", "pip", "compile", "--no-annotate", "--no-header"]
    done = subprocess.run([*command, str(tmp_path / "both.in")], capture_output=True, text=True, check=False)
    if done.returncode != 0 and "dns error" in done.stderr:
        pytest.skip("no package index can be reached")
    assert done.returncode == 0, done.stderr
    resolved = dict(line.split("==") for line in done.stdout.split())
    assert resolved["torch"] == torch.split("==")[1]
    assert resolved["nvidia-cuda-nvrtc"].startswith("13.0.")


def test_readme_and_ci_run_the_same_command():
    root = Path(__file__).parent.parent
    last = (root / ".ci" / "run").read_text().strip().splitlines()[-1]
    assert last in (root / "README.md").read_text()


def test_public_names_stay_what_they_are_once_used():
    """A subpackage of the same name would take a public name's place when it is first imported."""
    code = (
        "import tilewright as tw\n"
        "before = {name: getattr(tw, name) for name in tw.__all__}\n"
        "tw.rung_config(tw.all_rungs().find('k12'))\n"
        "import tilewright.cli, tilewright.lab.ladder\n"
        "print(all(getattr(tw, name) is value for name, value in before.items()))\n"
    )
    assert python(code).stdout.strip() == "True"


def test_the_readmes_python_runs():
    readme = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
    block = re.search(r"```python\n(.*?)```", readme, re.DOTALL)[1]
    done = python(block + "\nassert (out == 32).all() and len(fits) > 1000 and tw.all_rungs().find('k12')\n")
    assert done.returncode == 0, done.stderr
