"""A view for programs: fields that stay as they are documented."""

import csv
import io
import re
from typing import Any

from eventproc._command.group.fields import PARTITION_FIELDS, RESOURCE_FIELDS, as_json, csv_rows
from eventproc._command.group.records import LAG_FIELDS, RECORD_FIELDS
from tests.unit.eventproc._command.group.views import (
    NOW,
    group_view,
    member,
    partition,
)


def test_csv_has_a_line_for_each_partition_with_the_time_of_the_view():
    """What is not known is an empty cell; ages are in seconds, without a unit."""
    text = csv_rows(group_view(partition(3, None, lag=None), partition(4, lag=12)))

    assert text == (
        "as_of,partition_id,owner_id,is_expired,record_age_s,sequence_number,checkpoint_age_s,"
        "checkpoint_error,lag,paused_since,pause_reason\n"
        "2026-01-31T08:00:00+00:00,3,,false,2.0,1200,1.0,,,,\n"
        "2026-01-31T08:00:00+00:00,4,host-1,false,2.0,1200,1.0,,12,,\n"
    )


def test_a_comma_or_a_line_in_a_name_stays_in_its_cell():
    """An owner id may be any text."""
    (row,) = csv.DictReader(io.StringIO(csv_rows(group_view(partition(0, 'a,"b"\nc')))))

    assert row["owner_id"] == 'a,"b"\nc'


def test_csv_without_a_header_continues_an_earlier_one():
    """For ``--watch``, which prints the header once."""
    assert csv_rows(group_view(partition(0)), header=False).startswith(NOW.isoformat())


def test_every_field_is_documented(request):
    """What a program may rely on has a row in ``docs/command.md``."""
    text = (request.config.rootpath / "docs/command.md").read_text()
    documented = set(re.findall(r"`(\w+)`", text))
    document: Any = as_json(group_view(partition(0), members=[member("host-1")]))
    (listed_member,) = document["members"]

    for fields in (
        document,
        PARTITION_FIELDS,
        RESOURCE_FIELDS,
        RECORD_FIELDS,
        LAG_FIELDS,
        listed_member,
    ):
        assert set(fields) <= documented
