"""Options that several verbs share, with their help texts and environment variables."""

from enum import StrEnum
from typing import Annotated

import typer

from eventproc.cli.arguments.sources import HUB_VARIABLE
from eventproc.cli.arguments.stores import STORAGE_VARIABLE


class OutputFormat(StrEnum):
    """The format of the output: a table for people, JSON for programs."""

    TABLE = "table"
    JSON = "json"


StoreSpec = Annotated[
    str,
    typer.Option(
        "--store",
        envvar="EVENTPROC_STORE",
        metavar="STORE",
        help="Where the group keeps ownership records and checkpoints: sqlite:PATH (one machine) "
        "or blob:CONTAINER (Azure Blob Storage). Add ?namespace=HOST to blob:CONTAINER to share "
        "the group with processors that write the namespace without its port.",
    ),
]

EventHub = Annotated[
    str,
    typer.Option(
        "--eventhub",
        envvar="EVENTPROC_EVENTHUB",
        metavar="NAME",
        help="The event hub, or the Kafka topic. Not needed if the connection string has "
        "EntityPath=NAME.",
        show_default=False,
    ),
]

ConsumerGroupName = Annotated[
    str,
    typer.Option(
        "--consumer-group",
        envvar="EVENTPROC_CONSUMER_GROUP",
        metavar="NAME",
        help="The consumer group. Processors of one consumer group share its partitions.",
    ),
]

ConnectionString = Annotated[
    str,
    typer.Option(
        "--connection-string",
        envvar=HUB_VARIABLE,
        metavar="TEXT",
        help="The connection string of the Event Hubs namespace or hub. With the prefix kafka+, "
        "the hub is read through its Kafka endpoint. For a Kafka broker, kafka://HOST:PORT. It is "
        "a secret: prefer the environment variable, because other users of the machine can see "
        "the arguments of a process.",
        show_default=False,
    ),
]

Namespace = Annotated[
    str,
    typer.Option(
        "--namespace",
        envvar="EVENTPROC_NAMESPACE",
        metavar="HOST",
        help="The Event Hubs namespace, for example contoso.servicebus.windows.net. Not needed "
        "with --connection-string.",
        show_default=False,
    ),
]

StorageConnectionString = Annotated[
    str,
    typer.Option(
        "--storage-connection-string",
        envvar=[STORAGE_VARIABLE, "AZURE_STORAGE_CONNECTION_STRING"],
        metavar="TEXT",
        help="The connection string of the storage account, for --store blob:CONTAINER. It is a "
        "secret: prefer the environment variable.",
        show_default=False,
    ),
]

Expiration = Annotated[
    str,
    typer.Option(
        "--expiration",
        envvar="EVENTPROC_EXPIRATION",
        metavar="DURATION",
        help="After this long without a renewal, the owner of a partition counts as dead and "
        "another processor may claim it. Must be the same for all processors of a group.",
    ),
]
