"""Fetch the jars of Delta Lake for the PySpark that is installed: delta_jars.py FOLDER."""

import sys

from delta import configure_spark_with_delta_pip
from pyspark.sql import SparkSession

builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
builder = builder.config("spark.jars.ivy", sys.argv[1])
configure_spark_with_delta_pip(builder).getOrCreate().stop()
