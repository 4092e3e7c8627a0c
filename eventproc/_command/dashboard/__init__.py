"""The page of a group: reads it while a browser looks, and serves what the readings show."""
