import io

from rich.console import Console

from kernelarc.clients.report import summarise


def shown(data, width=120):
    console = Console(file=io.StringIO(), width=width)
    console.print(summarise(data))
    return console.file.getvalue()


def test_the_summary_has_leaders_rejects_and_failed_agents(data):
    text = shown(data)
    for expected in ("Run r_12 finished: every", "3.90x [3.67, 4.09]", "69%", "2 PRECISION"):
        assert expected in text
    assert "agent ada failed: no model answers" in text


def test_hostile_texts_have_no_effect(data):
    agent = data.agents[1].model_copy(update={"reason": "[red]x[/blue] \x1b[2J"})
    text = shown(data.model_copy(update={"agents": (agent,)}))
    assert "[red]x[/blue]" in text
    assert "\x1b" not in text
