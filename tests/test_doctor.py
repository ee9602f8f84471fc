import pytest

from tilewright.lab import doctor
from tilewright.run import cuda as cuda_backend


def test_a_driver_too_old_for_cuda_13_is_named_with_the_fix(monkeypatch):
    import cuda.core
    from cuda.bindings import driver

    monkeypatch.setattr(cuda.core, "Device", lambda *_: None)
    monkeypatch.setattr(driver, "cuCtxGetCurrent", lambda: (driver.CUresult.CUDA_ERROR_NOT_INITIALIZED, None))
    monkeypatch.setattr(driver, "cuDriverGetVersion", lambda: (driver.CUresult.CUDA_SUCCESS, 12080))
    message = cuda_backend._probe_error.__wrapped__()
    assert "the driver supports CUDA 12.8" in message and "R580" in message


@pytest.mark.parametrize("able", [True, False])
def test_without_a_way_to_run_kernels_the_status_says_so(monkeypatch, able, capsys):
    finding = doctor.Finding("C++ compiler", able, "", "the emulator", "install one")
    others = [doctor.Finding("NVRTC", True, "", ""), doctor.Finding("GPU and driver", False, "", "", "get one")]
    monkeypatch.setattr(doctor, "findings", lambda: [finding, *others])
    assert doctor.run_doctor(as_json=False) == (0 if able else 3)
    assert "get one" in capsys.readouterr().out


def test_a_cache_that_cannot_be_written_is_found(cold_cache):
    cold_cache.write_text("a file")
    found = {f.name: f for f in doctor.findings()}
    assert not found["cache"].found and "TILEWRIGHT_CACHE_DIR" in found["cache"].fix
