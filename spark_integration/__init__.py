"""The same handlers and checkpoints inside Spark structured streaming."""

from spark_integration.errors import EventsLostError
from spark_integration.recipes import SourceRecipe, StoreRecipe
from spark_integration.registration import register
from spark_integration.secrets import Secret

__all__ = ["EventsLostError", "Secret", "SourceRecipe", "StoreRecipe", "register"]
