"""``python -m eventproc.cli``: the ``eventproc`` command without an installed script."""

import sys

from eventproc_command import main

sys.exit(main())
