"""The names of our commands in messages, as the user typed them.

`deeptweak` sets a variable, to its name or to the path that was typed, that all its processes
inherit. Without it the commands are modules of this repository.
"""

from __future__ import annotations

import os
from pathlib import Path

VARIABLE = "DEEPTWEAK_STARTED_AS"
NAME = "deeptweak"
# There the modules lie inside a package, and are no commands.
_INSTALLED = Path(__file__).parents[1].name == "_house"
_TYPED = os.environ.get(VARIABLE) or NAME * _INSTALLED
JUDGE = _TYPED or "python -m analysis"
MEASURE = _TYPED or "python -m fixtures"
# With an extra in the braces, or nothing.
INSTALL = f"pip install '{NAME}{{}}'" if _INSTALLED else "in the clone, pip install '.{}'"
