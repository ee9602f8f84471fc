"""Kernels that would bring a process down, in the emulator: each is a report, and nothing else breaks."""

import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from tilewright.compile import own_folder
from tilewright.compile.binary import Binary
from tilewright.emulator import process, report
from tilewright.errors import LaunchFailed, OutOfBounds, TimedOut

SPIN = "while (*static_cast<volatile float*>(args.y) != 0) {}"


@pytest.mark.parametrize(
    "body",
    [
        f"\n\nif (t == 5)\n  {SPIN}",
        "\n\n\nwhile (true) __syncthreads();",
        "\n\n\nfor (volatile int i = 0;; i = i + 1) args.y[i % 8] = float(i);",
    ],
)
@pytest.mark.parametrize("headers", [(), ("grid",)])
def test_a_loop_without_end_is_stopped_and_its_line_named(emulate, body, headers):
    with pytest.raises(TimedOut, match=r"within timeout_s=0\.3: it was at thread .* of CTA \(0,0,0\) at probe.cu:4"):
        emulate(body, *headers, timeout_s=0.3)


def test_of_ctas_that_take_turns_the_one_that_runs_is_named(emulate):
    body = f"if (blockIdx.x == 2) {SPIN}\nif (t == 0) wait_until(args.flags, 1);"
    with pytest.raises(TimedOut, match=r"it was at thread \(0,0,0\) of CTA \(2,0,0\) at probe.cu:1"):
        emulate(body, "grid", grid=3, workers=3, timeout_s=0.3)


def test_a_hundred_kilobytes_of_locals_fit(emulate):
    body = """volatile float big[25600];
    for (int i = 0; i < 25600; ++i) big[i] = float(i + t);
    __syncthreads();
    args.y[t] = big[25599];"""
    assert list(emulate(body).y[:32]) == [25599.0 + t for t in range(32)]


@pytest.mark.parametrize("elements", [40000, 1 << 22])
def test_more_locals_than_a_stack_holds_are_an_overflow(emulate, elements):
    with pytest.raises(LaunchFailed, match=r"overflows its thread's stack of 128 KiB.*thread \(0,0,0\)"):
        emulate(f"volatile float big[{elements}]; big[t] = 1; args.y[t] = big[{elements} - 1 - t];")


def test_recursion_without_end_is_an_overflow(emulate):
    body = """struct Deep {
      static __attribute__((noinline)) float down(volatile float* y) { return y[0] == 12345 ? 0 : 1 + down(y + 1 - 1); }
    };
    args.y[t] = Deep::down(args.y) + Deep::down(args.y);"""
    with pytest.raises(LaunchFailed, match="overflows its thread's stack"):
        emulate(body)


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("nullptr", r"writes address 0x0, which belongs to no array"),
        ("reinterpret_cast<float*>(16)", r"writes address 0x10, which belongs to no array"),
        ("reinterpret_cast<float*>(0x123456789000)", r"writes address 0x123456789000, which belongs to no array"),
        ("args.y + (1ll << 40)", r"writes address 0x[0-9a-f]+, which belongs to no array"),
        ("args.y + (1ll << 30)", r"writes Y out of bounds: byte offset 4294967296"),
    ],
)
def test_a_wild_store_is_reported_with_its_line(emulate, address, words):
    body = f"\nif (t == 3) *static_cast<float*>({address}) = 1;"
    with pytest.raises(OutOfBounds, match=words + r".*thread \(3,0,0\).*probe.cu:2"):
        emulate(body)


@pytest.mark.parametrize(
    "body",
    [
        "reinterpret_cast<void (*)()>(args.flags)();",  # data as code
        "__builtin_trap();",
        # its own stack, and what lies about it
        'char here; volatile char* p = &here; asm("" : "+r"(p));\nfor (int i = -8192; i < 8192; ++i) p[i] = 1;',
        "if (t == 31) for (volatile float* p = args.y;; p += 1 << 10) *p = 1;",
    ],
)
def test_whatever_else_a_kernel_breaks_only_its_launch_fails(emulate, body):
    with pytest.raises(LaunchFailed, match="probe: "):
        emulate(body, timeout_s=3)
    assert emulate("args.y[t] = 1;").y[0] == 1


def test_a_kernel_that_ends_the_process_is_a_failed_launch(emulate):
    with pytest.raises(LaunchFailed, match="without a report, exit status 3"):
        emulate('void quit(int) asm("exit");\nquit(3);')


def test_a_thread_that_waits_for_nothing_is_told_as_the_runners_memory_overwritten():
    wait = {"kind": "none", "count": 48, "site": None, "first": [28, 0, 0], "thread": 28}
    told = {"failure": "deadlock", "ctas": [{"cta": [0, 0, 0], "exited": 0, "waits": [wait]}]}
    launch = SimpleNamespace(kernel=SimpleNamespace(entry="probe"))
    error = report.failure(told, launch, memory=None)
    assert type(error) is LaunchFailed
    assert "probe: writes over the emulator's own memory, by an index past the end" in str(error)


def test_threads_that_run_at_once_share_one_folder_of_binaries(monkeypatch, tmp_path):
    made = []

    def slowly(**options):
        time.sleep(0.05)
        made.append(tempfile.mkdtemp(dir=tmp_path, prefix=options["prefix"]))
        return made[-1]

    monkeypatch.setattr(own_folder, "tempfile", SimpleNamespace(mkdtemp=slowly, gettempdir=tempfile.gettempdir))
    monkeypatch.setattr(process, "_files", own_folder.ExecutableFiles())
    binaries = [Binary("f", "x86-64", b"text", f"key{i}", "none") for i in range(8)]
    with ThreadPoolExecutor(8) as pool:
        paths = list(pool.map(process.binary_file, binaries))
    assert len(made) == 1 and all(path.exists() for path in paths)


def run_apart(code, *command, **options):
    """Run `code` in a process of its own, where `probe(body)` runs a kernel and gives y; what it writes as `told`."""
    lines = (
        "import os, sys",
        "from conftest import device_probe_source, launch_device_probe",
        "from tilewright.compile.host import compile_host, host_source",
        "from tilewright.run.emulator import EmulatorBackend",
        "def probe(body, **options):",
        "    binary = compile_host(host_source(device_probe_source(body), args_type='Args'))",
        "    with EmulatorBackend(timeout_s=20.0, **options) as device:",
        "        return launch_device_probe(device, binary).y[:2].tolist()",
        code,
    )
    path = os.pathsep.join((os.path.dirname(__file__), *sys.path))
    options = {"timeout": 120, "check": True, **options}
    environment = {**os.environ, "PYTHONPATH": path, **options.pop("env", {})}
    return subprocess.run([*command, sys.executable, "-c", "\n".join(lines)], env=environment, **options)


def test_a_child_of_fork_that_ends_leaves_its_parents_kernels_alone(tmp_path):
    code = f"""
assert probe("args.y[t] = 1;") == [1, 1]
child = os.fork()
if child == 0:
    assert probe("args.y[t] = 1;") == [1, 1]
    sys.exit()
assert os.waitpid(child, 0)[1] == 0
assert probe("args.y[t] = 1;") == [1, 1]
assert len(os.listdir({str(tmp_path)!r})) == 1
"""
    run_apart(code, env={"TMPDIR": str(tmp_path)})
    assert list(tmp_path.iterdir()) == []


def test_a_process_without_standard_streams_runs_kernels(tmp_path):
    """What it opens first gets descriptors 0, 1 and 2; so do the arrays of a kernel that prints."""
    code = f"""
body = 'if (t == 0) printf("printed"); args.y[t] = 1;'
compile_host(host_source(device_probe_source(body), args_type="Args"))
for descriptor in (0, 1, 2):
    os.close(descriptor)
told = str(probe(body))
open({str(tmp_path / "y")!r}, "w").write(told)
"""
    run_apart(code)
    assert (tmp_path / "y").read_text() == "[1.0, 1.0]"


@pytest.mark.parametrize("option", ["noexec", "size=64k"])
def test_where_temporary_files_cannot_be_executed_or_do_not_fit_another_folder_serves(tmp_path, option):
    mount = f"mount -t tmpfs -o {option} tmpfs {tmp_path}"
    if subprocess.run(["unshare", "-m", "sh", "-c", mount], capture_output=True, check=False).returncode:
        pytest.skip("needs the right to mount a file system")
    emulated = "assert probe('args.y[t] = 1;') == [1, 1]"
    run_apart(emulated)  # compiled by now
    shell = f'{mount} && exec env TMPDIR={tmp_path} "$@"'
    run_apart(emulated, "unshare", "-m", "sh", "-c", shell, "sh")


def test_a_runner_that_may_not_be_started_is_told_with_the_folder_to_set(emulate, monkeypatch, tmp_path):
    refused = tmp_path / "runner"
    refused.write_text("not executable")
    emulate("args.y[t] = 1;")
    whole = process.binary_file
    monkeypatch.setattr(process, "binary_file", lambda binary: refused if binary.entry == "main" else whole(binary))
    with pytest.raises(LaunchFailed, match=r"probe: .*runner cannot be started .*set TMPDIR"):
        emulate("args.y[t] = 1;")
