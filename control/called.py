"""The names of our commands in messages, as the user called them.

`deeptweak` sets a variable that all its processes inherit. Without it the commands are modules of
this repository.
"""

from __future__ import annotations

import os
from pathlib import Path

VARIABLE = "DEEPTWEAK_STARTED_AS"
NAME = "deeptweak"
# There the modules lie inside a package, and are no commands.
_INSTALLED = Path(__file__).parents[1].name == "_house"
_BY_NAME = _INSTALLED or os.environ.get(VARIABLE) == NAME
JUDGE = NAME if _BY_NAME else "python -m analysis"
MEASURE = NAME if _BY_NAME else "python -m fixtures"
# With an extra in the braces, or nothing.
INSTALL = f"pip install '{NAME}{{}}'" if _INSTALLED else "in the clone, pip install '.{}'"
