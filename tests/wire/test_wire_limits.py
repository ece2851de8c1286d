"""What headers say about limits and about when to come back."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langchain_svc._wire.failures import read_rate_limit, read_wait

NOW = 1_790_000_000.0  # 2026-09-21T14:13:20Z


HTTP_DATE = format_datetime(datetime.fromtimestamp(NOW + 30, UTC), usegmt=True)


@pytest.mark.parametrize(
    ("value", "wait"),
    [
        ("0", 0.0), ("2.5", 2.5), (" 3 ", 3.0), ("1790000030", 30.0), ("1790000030.5", 30.5), ("1790000030500", 30.5),
        ("2026-09-21T14:13:50Z", 30.0), ("2026-09-21T14:13:50.5z", 30.5), ("2026-09-21T14:13:50.123456789Z", 30.123456),
        ("2026-09-21T14:13:50", 30.0), ("2026-09-21T16:13:50+02:00", 30.0), (HTTP_DATE, 30.0),
        ("1m30s", 90.0), ("1m 30s", 90.0), ("1800ms", 1.8), ("1.5s", 1.5), ("1d2h3m4s", 93784.0),
    ],
)  # fmt: skip
def test_every_form_of_a_wait(value, wait):
    assert read_wait(value, NOW) == pytest.approx(wait, abs=1e-4)


@pytest.mark.parametrize(
    "value",
    [None, "", "soon", "-5", "1789999970", "2026-09-21T14:00:00Z", "nan", "inf", "1e9", "0x10",
     "5 minutes", "1m30", "٣", "9" * 5000, "Mon, 99 Foo 2026 00:00:00 GMT", "1,5", "--", "s", "{}"],
)  # fmt: skip
def test_nonsense_and_the_past_are_no_wait(value):
    assert read_wait(value, NOW) is None


@given(st.text(max_size=80))
def test_no_header_text_raises(value):
    wait = read_wait(value, NOW)
    assert wait is None or wait >= 0


def test_rate_limit_is_parsed_and_kept_raw():
    raw = {"limit": "60", "remaining": "59", "reset": "1790000030"}
    headers = {f"x-ratelimit-{name}": text for name, text in raw.items()}
    told = {"reset_after": 30.0, "reset_at": "2026-09-21T14:13:50+00:00"}
    assert read_rate_limit(headers, NOW) == {"limit": 60, "remaining": 59, **told, "raw": raw}


def test_what_cannot_be_read_of_a_rate_limit_stays_raw():
    headers = {"x-ratelimit-limit": "sixty", "x-ratelimit-reset": "later"}
    assert read_rate_limit(headers, NOW) == {"raw": {"limit": "sixty", "reset": "later"}}
    assert read_rate_limit({}, NOW) is None
