"""Where the data sets of tested workloads lie."""

from __future__ import annotations

from pathlib import Path

import pytest

from fixtures.studies.io import pagecache


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder on a block device."""
    folder = tmp_path_factory.mktemp("datasets")
    if not pagecache.device_of(folder):
        pytest.skip(f"{folder} lies on no block device: nothing can be evicted from memory there")
    return folder
