"""The screen parses what a candidate wrote: no text may make it fail."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelarc.guard.schema import Language
from kernelarc.guard.screen import Entry, screen_files

PIECES = [
    *("#include <", "#define A(x) ", '"', "'", 'R"d(', "\\\n", "//", "/*", "*/", "??/", "\0"),
    *("def run(", "class ", "lambda ", "import ", "f'{", '"""', "\t", "\f", "\r", "if 1:\n "),
    *("\ufeff", "\u2028", "\ud800", "0x", "1_0", "@", ":=", "*", "(" * 90, "-" * 300, "[" * 200),
]
CODE = st.lists(st.text(max_size=30) | st.sampled_from(PIECES), max_size=12).map("".join)


@pytest.mark.parametrize("language", [Language.CPP, Language.PYTORCH, Language.TRITON])
def test_any_text_is_read_without_failing(language):
    path = f"main{language.suffixes[0]}"

    @given(CODE)
    def check(text):
        entry = Entry(path, "run", 3, "run(...)")
        findings = screen_files({path: text, "other.h": "// here"}, language, entry, "cpu")
        assert all(finding.message for finding in findings)

    check()
