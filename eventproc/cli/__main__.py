"""``python -m eventproc.cli``: the ``eventproc`` command without an installed script."""

import sys

from eventproc.cli.entry_point import main

sys.exit(main())
