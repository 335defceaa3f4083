import json
import re
import shutil
import subprocess
from html.parser import HTMLParser

import pytest
from plotly.offline import get_plotlyjs

from kernelarc.clients.report import (
    AgentFacts,
    InsightFacts,
    ProblemFacts,
    ReportData,
    WorkloadFacts,
    build_report,
    page,
)

ATTACK = "</script><img src=x onerror=alert(1)>\"'<!--<script>{{ 7 * 7 }}\u202e"


class Page(HTMLParser):
    """The elements and visible text of a document."""

    def __init__(self, document):
        super().__init__(convert_charrefs=True)
        self.elements = []
        self.texts = []
        self._open = []
        self.feed(document)

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        self._open.append(tag)

    def handle_endtag(self, tag):
        while self._open and self._open.pop() != tag:
            pass

    def handle_data(self, data):
        if self._open and self._open[-1] not in ("script", "style"):
            self.texts.append(data)

    @property
    def text(self):
        return re.sub(r"\s+", " ", " ".join(self.texts))

    def count(self, tag):
        return sum(name == tag for name, _ in self.elements)


def with_attacks(value):
    """The same facts with every free text replaced by an attack."""
    if isinstance(value, str) and type(value) is str:
        return ATTACK
    if isinstance(value, tuple | list):
        return type(value)(with_attacks(item) for item in value)
    if isinstance(value, dict):
        return {key + ATTACK: with_attacks(item) for key, item in value.items()}
    if hasattr(value, "model_fields_set"):
        fields = {name: with_attacks(item) for name, item in dict(value).items()}
        return type(value).model_construct(**fields)
    return value


def test_the_measured_numbers_are_on_the_page_with_their_interval(data):
    text = Page(build_report(data)).text
    for expected in (
        "KernelArc run r_12",
        "3.90x [3.67, 4.09]",
        "3.67 to 4.09, coverage 98.3",
        "00000016",
        "cache-blocking, by builtin-2",
        "2,310 µs",
        "5 promoted, 6 rejected",
        "Width 64 loads halve the time",
        "largest error 0.31 at [3, 17]",
        "no model answers",
        "Two-core box",
        "landlock",
        "No attempt of this run became the leader.",
    ):
        assert expected in text


def test_what_was_not_measured_is_not_shown(data):
    unmeasured = data.model_copy(
        update={
            "environment": None,
            "isolation": None,
            "problems": (
                ProblemFacts(name="p", title="P", workloads=(WorkloadFacts(label="n=1"),)),
            ),
        }
    )
    shown = Page(build_report(unmeasured))
    assert "Environment" not in shown.text
    assert "Isolation" not in shown.text
    assert "roofline" not in shown.text.replace("Of roofline", "")
    assert not [a for tag, a in shown.elements if a.get("class") == "plot"]
    assert "None" not in shown.text
    assert "nan" not in shown.text


def test_every_plot_and_table_says_what_it_shows(data):
    shown = Page(build_report(data))
    assert shown.count("table") == shown.count("caption") == 8
    assert shown.count("figure") == shown.count("figcaption") == 6


def test_attacks_in_every_text_stay_text(data):
    honest, hostile = Page(build_report(data)), Page(build_report(with_attacks(data)))
    assert [tag for tag, _ in hostile.elements] == [tag for tag, _ in honest.elements]
    for _, attributes in hostile.elements:
        assert not [name for name in attributes if name.startswith("on")]
    assert "<img src=x onerror=alert(1)>" in hostile.text
    assert "{{ 7 * 7 }}" in hostile.text
    assert "\u202e" not in hostile.text


def test_a_figure_cannot_end_the_element_that_holds_it():
    text = str(page._json({"name": "</script><!--<script>"}))
    assert not set("<>") & set(text)
    assert json.loads(text) == {"name": "</script><!--<script>"}


def test_nothing_is_fetched_from_anywhere(data):
    document = build_report(data)
    for tag, attributes in Page(document).elements:
        assert tag not in ("link", "img", "iframe", "object", "embed", "base", "form")
        assert "src" not in attributes
        assert attributes.get("href", "#").startswith("#")
    policy = next(
        attributes["content"]
        for _, attributes in Page(document).elements
        if attributes.get("http-equiv") == "Content-Security-Policy"
    )
    assert "default-src 'none'" in policy
    assert "http" not in policy
    own = document.replace(get_plotlyjs(), "")
    assert len(own) < 200_000
    assert "://" not in own
    assert "url(" not in own


def test_the_same_facts_give_the_same_page(data):
    assert build_report(data) == build_report(data)


def test_a_run_that_has_only_begun_has_a_report(data):
    begun = ReportData(run=data.run.model_copy(update={"ended": None, "state": "running"}))
    assert "running" in Page(build_report(begun)).text


def test_texts_are_cut_to_the_length_of_an_insight(data):
    wordy = InsightFacts(
        time=data.run.started, agent="a", kind="success", text="x" * 5000, verified=False
    )
    document = build_report(
        data.model_copy(update={"problems": (ProblemFacts(name="p", title="", insights=(wordy,)),)})
    )
    assert "x" * 1999 + "…" in document
    assert "x" * 2000 not in document


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs chromium")
@pytest.mark.parametrize("hostile", [False, True])
def test_a_browser_draws_every_plot_and_runs_no_attack(data, tmp_path, hostile):
    path = tmp_path / "report.html"
    agents = (AgentFacts(name=ATTACK, kind="llm", state="failed"),)
    shown = with_attacks(data) if hostile else data.model_copy(update={"agents": agents})
    path.write_text(build_report(shown), encoding="utf-8")
    drawn = subprocess.run(
        [
            "chromium",
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            f"--user-data-dir={tmp_path / 'profile'}",
            "--virtual-time-budget=5000",
            "--dump-dom",
            path.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=100,
        check=True,
    ).stdout
    body = re.sub(r"<script.*?</script>", "", drawn, flags=re.DOTALL)
    assert len(re.findall(r'class="plot-container', body)) == 6
    assert not re.search(r"<img[^>]*onerror", body)
