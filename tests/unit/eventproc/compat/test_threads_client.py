"""A call of ``receive`` of the client for threads."""

from azure.core.credentials import AzureNamedKeyCredential

from eventproc.compat._caller import ThreadCaller
from eventproc.compat._receive import Receive, callbacks_of
from eventproc.compat._settings import ClientSettings
from eventproc.compat._threads_client import _Call


def test_the_thread_of_the_event_loop_ends_with_the_call():
    """A program may receive again and again."""
    caller = ThreadCaller()
    callbacks = callbacks_of(print, {}, caller, takes_batches=False)
    key = AzureNamedKeyCredential("name", "key")
    settings = ClientSettings("namespace", "hub", "$Default", key, {})
    call = _Call(settings, Receive.of({}), callbacks)
    call.close()
    call.run(caller)

    assert call._loop.is_closed
