"""`[project.urls]` of a distribution: its repository, known to a release job only."""

from __future__ import annotations

import os
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

VARIABLE = "DEEPTWEAK_REPOSITORY_URL"
PAGES = {
    "Homepage": "",
    "Documentation": "/blob/main/docs/README.md",
    "Changelog": "/blob/main/CHANGELOG.md",
    "Issues": "/issues",
    "Security": "/security/policy",
}


class RepositoryUrls(MetadataHookInterface):
    """Sets the URLs where the variable is set.

    Elsewhere, as in a clone, a distribution has none.
    """

    def update(self, metadata: dict[str, Any]) -> None:
        """Fill in the field `urls` that pyproject.toml declares as dynamic."""
        repository = os.environ.get(VARIABLE, "").rstrip("/")
        metadata["urls"] = (
            {name: f"{repository}{page}" for name, page in PAGES.items()} if repository else {}
        )
