"""The options that several verbs share, each with its help and its environment variable."""

from enum import StrEnum
from typing import Annotated

import typer

from eventproc.cli.sources import HUB_VARIABLE
from eventproc.cli.stores import STORAGE_VARIABLE


class OutputFormat(StrEnum):
    """For whom the output is."""

    TABLE = "table"
    JSON = "json"


StoreSpec = Annotated[
    str,
    typer.Option(
        "--store",
        envvar="EVENTPROC_STORE",
        metavar="STORE",
        help="Where the group keeps ownership and checkpoints: sqlite:PATH (one machine) or "
        "blob:CONTAINER (Azure Blob Storage).",
    ),
]

EventHub = Annotated[
    str,
    typer.Option(
        "--eventhub",
        envvar="EVENTPROC_EVENTHUB",
        metavar="NAME",
        help="The event hub. Not needed if the connection string ends in EntityPath=NAME.",
        show_default=False,
    ),
]

ConsumerGroupName = Annotated[
    str,
    typer.Option(
        "--consumer-group",
        envvar="EVENTPROC_CONSUMER_GROUP",
        metavar="NAME",
        help="Processors of one consumer group share its partitions.",
    ),
]

ConnectionString = Annotated[
    str,
    typer.Option(
        "--connection-string",
        envvar=HUB_VARIABLE,
        metavar="TEXT",
        help="Of the Event Hubs namespace or hub; with kafka+ before it, its Kafka endpoint is "
        "read; or kafka://HOST:PORT of a broker, then --eventhub is the topic. A secret: better "
        "set the variable, for others can see the arguments of a process.",
        show_default=False,
    ),
]

Namespace = Annotated[
    str,
    typer.Option(
        "--namespace",
        envvar="EVENTPROC_NAMESPACE",
        metavar="HOST",
        help="The Event Hubs namespace, for example contoso.servicebus.windows.net. Not "
        "needed with a connection string.",
        show_default=False,
    ),
]

StorageConnectionString = Annotated[
    str,
    typer.Option(
        "--storage-connection-string",
        envvar=[STORAGE_VARIABLE, "AZURE_STORAGE_CONNECTION_STRING"],
        metavar="TEXT",
        help="Of the storage account, for --store blob:... A secret: better set the variable.",
        show_default=False,
    ),
]

Expiration = Annotated[
    str,
    typer.Option(
        "--expiration",
        envvar="EVENTPROC_EXPIRATION",
        metavar="DURATION",
        help="An ownership record that was not renewed for this long belongs to a dead process. "
        "The same for all processors of a group.",
    ),
]
