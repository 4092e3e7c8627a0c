"""``eventproc demo``: the product at work on one machine, with a check of the result.

``stage`` starts the parts, ``story`` changes the group, and ``report`` says whether all was right.
"""
