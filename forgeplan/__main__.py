"""What does `python -m forgeplan` do? The same as the command `forgeplan`."""

from __future__ import annotations

import sys

from forgeplan.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
