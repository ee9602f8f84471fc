from __future__ import annotations

import pytest
from hypothesis import settings

from tilewright.compile import cache as binary_cache

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


@pytest.fixture
def cold_cache(tmp_path, monkeypatch):
    """An empty cache of the test's own, and a process that has not warned yet."""
    folder = tmp_path / "cache"
    monkeypatch.setenv(binary_cache.ENVIRONMENT, str(folder))
    monkeypatch.setattr(binary_cache, "_warned", False)
    return folder


def pytest_collection_modifyitems(items):
    for item in items:
        if "gpu" in item.keywords and gpu_missing():
            item.add_marker(pytest.mark.skip(reason=f"needs a GPU: {gpu_missing()}"))


def gpu_missing() -> str:
    from tilewright.errors import NoDevice
    from tilewright.run.cuda import probe

    try:
        probe()
    except NoDevice as error:
        return str(error)
    return ""
