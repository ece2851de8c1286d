"""`python -m langchain_svc` is the command `langchain-svc`."""

from __future__ import annotations

import sys

from .cli import main

sys.exit(main())
