from hypothesis import given
from hypothesis import strategies as st

from kernelarc.server.outcomes import LOG_CHARS, head_and_tail
from kernelarc.server.views import rounded


@given(st.text(alphabet="ab \n", max_size=9000))
def test_a_cut_log_keeps_both_ends_and_counts_what_is_missing(text):
    cut = head_and_tail(text)
    if len(text) <= LOG_CHARS:
        assert cut == text
        return
    head, marker, tail = cut.partition("\n[")
    count, _, tail = tail.partition(" lines omitted]\n")
    assert marker
    assert text.startswith(head)
    assert text.endswith(tail)
    assert len(head) + len(tail) <= LOG_CHARS
    assert int(count) == text.count("\n") - head.count("\n") - tail.count("\n")


@given(st.floats(min_value=1e-12, max_value=1e12))
def test_rounding_keeps_four_digits(value):
    kept = rounded(value)
    assert abs(kept - value) <= 5e-4 * value
    assert len(f"{kept:.10e}".partition("e")[0].rstrip("0").replace(".", "")) <= 4


def test_what_was_not_measured_stays_absent():
    assert rounded(None) is None
