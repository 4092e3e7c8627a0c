"""``python -m eventproc.cli`` is the ``eventproc`` command, where no script is installed."""

import sys

from eventproc.cli import main

sys.exit(main())
