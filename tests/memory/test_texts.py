from hypothesis import given
from hypothesis import strategies as st

from kernelarc.memory.texts import checked


@given(st.text(alphabet=st.characters(), max_size=80))
def test_what_is_kept_can_be_stored_and_is_kept_again_unchanged(text):
    kept = checked("text", text, 80, shortest=0)
    assert kept.encode().decode() == kept
    assert "\0" not in kept
    assert checked("text", kept, 80, shortest=0) == kept


@given(st.text(alphabet=st.characters(categories=["L", "N", "P"]), max_size=80))
def test_letters_numbers_and_punctuation_are_kept_as_they_are(text):
    assert checked("text", text, 80, shortest=0) == text
