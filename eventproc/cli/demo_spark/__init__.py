"""``eventproc demo-spark``: the flights through Spark, of which a part is killed."""
