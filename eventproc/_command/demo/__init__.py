"""``eventproc demo``: the product at work on one machine, with a check of the result.

``group`` starts the parts, ``run`` changes the group, and ``report`` says whether all was right.
"""
