"""``python -m eventproc``: the ``eventproc`` command without an installed script."""

import sys

from eventproc._command.entry_point import main

sys.exit(main())
