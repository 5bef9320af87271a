"""What is on the screen."""

from __future__ import annotations

import msgspec

from moorage import operators
from moorage.view import model, text

from . import objects

COLLECTOR = operators.SYSTEMS["collector"].described[0]


def view(obj: dict, **changes: object) -> model.ObjectView:
    """A view with changes."""
    return msgspec.structs.replace(model.of(COLLECTOR, obj), **changes)


def tagged(words: str, colour: str) -> str:
    """Colour that a test can read."""
    return f"<{colour}>{words}</{colour}>"


def test_the_screen_has_release_chart_children_reason_and_next() -> None:
    """One screen answers the first five questions."""
    children = (model.ChildView("Deployment", "acme", "web", "False", "ImagePull", "no such image"),)

    shown = text.one_screen([view(objects.READY, children=children)])

    assert 'Chart       collector 1.0.0  sha256:0123456789ab  for "^1"' in shown
    assert "Release     acme/collector-main  revision 3 deployed" in shown
    assert "Objects     2 of 2 ready  (1 Deployment, 1 Service)" in shown
    assert "✗ Deployment web  ImagePull: no such image" in shown
    assert "Next        nothing" in shown


def test_no_line_is_wider_than_the_terminal() -> None:
    """Events and tables are cut, messages go on below."""
    long = objects.collector(objects.condition("Ready", "False", "Starting", "word " * 60))
    views = [model.of(COLLECTOR, long, [objects.event("2026-01-01T00:00:00Z", "Starting", "word " * 60)])]

    for screen in (text.one_screen, text.table):
        assert 72 >= max(len(line) for line in screen(views, text.plain, 72).splitlines())


def test_without_a_terminal_nothing_is_cut() -> None:
    """A pipe gets all of it."""
    message = "word " * 60 + "end"
    long = objects.collector(objects.condition("Ready", "False", "Starting", message))

    assert message in text.table([model.of(COLLECTOR, long)])


def test_colours_follow_the_state() -> None:
    """Green is ready, red is stalled, yellow is everything between."""
    shown = text.table([view(objects.READY), view(objects.WAITING), view(objects.STALLED)], tagged)

    assert "<green>True" in shown
    assert "<yellow>False" in shown
    assert "<red>False" in shown
    assert shown.endswith("1 of 3 ready, 1 stalled, 1 on the way")


def test_the_explanation_has_the_blocker_on_top() -> None:
    """Then what to do, then facts and steps."""
    lines = text.explanation([view(objects.STALLED)]).splitlines()

    assert "Collector default/hello is stalled: SchemaViolation" == lines[0]
    assert "at '/replicas': got string" in lines[1]
    assert "Next: correct it; or the chart" == lines[2]
    assert any(line.startswith("  ▶ chart_renders") for line in lines)


def test_an_empty_table_says_what_to_do() -> None:
    """Nothing there is no dead end."""
    assert "kubectl apply" in text.table([])
