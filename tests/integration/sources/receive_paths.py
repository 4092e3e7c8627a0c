"""Both receive paths of Event Hubs, as parameters of a test."""

import pytest

from eventproc.sources.eventhubs import ReceivePath

# Azure's client does not close the connection of a link that was lost.
_UNCLOSED = pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")

RECEIVE_PATHS = (
    ReceivePath.DIRECT,
    pytest.param(ReceivePath.PUBLIC, marks=(pytest.mark.long, _UNCLOSED)),
)
