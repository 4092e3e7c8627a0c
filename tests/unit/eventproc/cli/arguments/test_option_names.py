"""Error messages of the library, in the words of the command line."""

import pytest

from eventproc.cli.arguments.option_names import in_options

OWN_ROSTER = "--roster MODULE:NAME of a roster that you made with"


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("load_balancing_interval is 0 s: give a timedelta", "--interval is 0 s: give a duration"),
        ("attempts_max is 0: give a whole number or None", "--attempts is 0: give a whole number"),
        ("topic is '': pass topic", "--eventhub is '': pass --eventhub"),
        ("create it (create_container=True)", "create it (--create-container)"),
        ("it is EventProcessorConfig.initial_position", "it is --start"),
        (
            "config sets 'a.b', which cannot be set: no",
            "the address of the hub sets 'a.b', which cannot be set: no",
        ),
        ("bootstrap_servers is ''", "the part after kafka:// is ''"),
        (
            "it has no pod: pass its name and its namespace to the roster",
            f"it has no pod: give {OWN_ROSTER} the right name and namespace",
        ),
        (
            "use ReplicaSetRoster in Deployments, and StatefulSetRoster elsewhere",
            "use --roster replicaset in Deployments, and --roster statefulset elsewhere",
        ),
        (
            "give a function that makes one, such as lambda: Own(...)",
            "define a function that makes one, `def make(): return Own(...)`, and give MODULE:make",
        ),
        ("a topic of its own, in an interval", "a topic of its own, in an interval"),
    ],
)
def test_a_message_names_options_and_no_words_of_python(message, shown):
    """A setting is its option; a word that is a setting's name by chance stays."""
    assert in_options(message) == shown
