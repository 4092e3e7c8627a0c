"""Error messages of the library, in the words of the command line."""

import pytest

from eventproc.cli.arguments.option_names import in_options


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
            "pod_name is 'laptop', which is no pod: set POD_NAME, or pass pod_name",
            "the name of this pod is 'laptop', which is no pod: set POD_NAME",
        ),
        (
            "no server. Run in a pod, or pass kubeconfig, the path of a file of kubectl",
            "no server. Run in a pod, or give --roster MODULE:NAME of one that you made with "
            "kubeconfig=PATH, a file of kubectl",
        ),
        (
            "it does not have a pod: pass its name and its namespace to the roster",
            "it does not have a pod: give --roster MODULE:NAME of one that you made with the right "
            "name and namespace",
        ),
        (
            "use ReplicaSetRoster in the pods of one, and StatefulSetRoster in those of the other",
            "use --roster replicaset in the pods of one, and --roster statefulset in those of the "
            "other",
        ),
        ("a topic of its own, in an interval", "a topic of its own, in an interval"),
    ],
)
def test_a_message_names_options_and_no_words_of_python(message, shown):
    """A setting is its option; a word that is a setting's name by chance stays."""
    assert in_options(message) == shown
