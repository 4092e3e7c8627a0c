"""``python -m tests.integration.capture 10_000_000``."""

from tests.integration.capture.storm import main

main()
