"""Print the id of the gate's own comment, if any: `find_comment.py MARKER < comments.json`.

Only a bot's comment counts: anybody can write the marker, and a comment that its author can edit is
no place for a verdict. Pages of comments may follow each other as one list or as several.
"""

# ruff: noqa: INP001  # a script of its own, no package

from __future__ import annotations

import json
import sys


def main() -> None:
    """Read the pages of `gh api --paginate` from stdin, and print the comment's id."""
    marker, text = sys.argv[1], sys.stdin.read().lstrip()
    while text:
        page, end = json.JSONDecoder().raw_decode(text)
        text = text[end:].lstrip()
        for comment in page:
            if (
                comment["user"]["type"] == "Bot"
                and comment["body"].split("\n", 1)[0].rstrip("\r") == marker
            ):
                print(comment["id"])
                return


if __name__ == "__main__":
    main()
