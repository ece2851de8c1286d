"""Puts the addresses of the repository that builds a release into its metadata.

The package has no address of its own: the forge that runs the build says where it is. Elsewhere the
metadata has none.
"""

import os

from hatchling.metadata.plugin.interface import MetadataHookInterface


class RepositoryUrls(MetadataHookInterface):
    """Fills `[project.urls]`."""

    def update(self, metadata: dict) -> None:
        """Add the addresses, where a forge names its own."""
        server = os.environ.get("GITHUB_SERVER_URL", "")
        repository = os.environ.get("GITHUB_REPOSITORY", "")
        if not server or not repository:
            metadata["urls"] = {}
            return
        home = f"{server}/{repository}"
        metadata["urls"] = {
            "Homepage": home,
            "Documentation": f"{home}/tree/main/docs",
            "Source": home,
            "Changelog": f"{home}/blob/main/CHANGELOG.md",
            "Issues": f"{home}/issues",
        }
