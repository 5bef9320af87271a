"""What is on the screen."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from moorage import operators
from moorage.runtime.reporting import screen_rows
from moorage.view import model, operator_state, text

from . import objects

COLLECTOR = operators.SYSTEMS["collector"].described[0]
ROWS = {each.resource.kind: each.rows for of in operators.SYSTEMS.values() for each in of.described}


def view(obj: dict, **changes: object) -> model.ObjectView:
    """A view with changes."""
    return msgspec.structs.replace(model.of(COLLECTOR, obj), **changes)


def tagged(words: str, colour: str) -> str:
    """Colour that a test can read."""
    return f"<{colour}>{words}</{colour}>"


def test_the_screen_has_release_chart_children_reason_and_next() -> None:
    """One screen answers the first five questions."""
    children = (model.ChildView("Deployment", "acme", "web", "False", "ImagePull", "no such image"),)

    shown = text.one_screen([view(objects.READY, children=children)], rows=ROWS)

    assert 'Chart       collector 1.0.0  sha256:0123456789ab  for "^1"' in shown
    assert "Release     acme/collector-main  revision 3 deployed" in shown
    assert "Objects     0 of 1 ready  (1 Deployment)" in shown
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


def test_objects_are_counted_as_the_rows_below_show_them() -> None:
    """Status may have counted others, or none; a Secret that is not read counts as neither."""
    rows = [("Deployment", "True"), ("Deployment", "False"), ("Secret", "Unknown")]
    children = tuple(model.ChildView(kind, "acme", f"{kind}{n}", ready) for n, (kind, ready) in enumerate(rows))

    assert "Objects     2 of 2 ready  (1 Deployment, 1 Service)" in text.one_screen([view(objects.READY)], rows=ROWS)
    assert "Objects     1 of 2 ready, 1 not read  (2 Deployment, 1 Secret)" in text.one_screen(
        [view(objects.READY, children=children)], rows=ROWS
    )


def shown(status: dict) -> Iterable[screen_rows.Row]:
    """The rows of a kind that has three."""
    yield screen_rows.Row("Above", str(status["size"]))
    yield screen_rows.Row(screen_rows.OBJECTS, "none were read")
    yield screen_rows.Row("Below", "two", (screen_rows.Item("one", good=True), screen_rows.Item("other", good=False)))


def test_a_kind_says_what_is_shown_of_it_and_where_its_objects_stand() -> None:
    """Without a word about them they stand below all else; and where none were read, the kind's own words do."""
    child = model.ChildView("Pod", "acme", "web", "True")
    one, other = (
        text.one_screen([view(objects.READY, status={"size": 3}, children=found)], rows={"Collector": shown})
        for found in ((), (child,))
    )
    lines = ["Below       two", "    ✓ one", "    ✗ other"]

    assert ["  Above       3", "  Objects     none were read", f"  {lines[0]}", *lines[1:]] == one.splitlines()[2:7]
    assert "  Objects     1 of 1 ready  (1 Pod)\n    ✓ Pod web\n  Below" in other
    assert "  Objects     1 of 1 ready  (1 Pod)\n    ✓ Pod web\n  Next" in text.one_screen(
        [view(objects.READY, status={}, children=(child,))]
    )


AWAY = operator_state.Operator("2026-01-01T00:00:00Z", "moorage-system/moorage")


def test_the_screen_says_that_nobody_looks_after_it_and_since_when() -> None:
    """The rest of it is what somebody saw before."""
    seen = model.of(COLLECTOR, objects.READY, seen=AWAY)

    for shown in (text.one_screen([seen]), text.explanation([seen]), text.table([seen], operator=AWAY.words)):
        assert (
            "moorage does not run: its Lease moorage-system/moorage was renewed last at 2026-01-01T00:00:00Z" in shown
        )


def test_the_explanation_says_that_the_latest_change_is_not_looked_at() -> None:
    """What its status says is of the spec before."""
    changed = objects.changed("2026-01-01T00:00:05Z")
    lines = text.explanation([model.of(COLLECTOR, changed)]).splitlines()

    assert "Collector default/hello is changed at 2026-01-01T00:00:05Z: NotLookedAt" == lines[0]
    assert "  the latest change is not looked at yet; before it: Ready: all steps are done" == lines[1]


def test_a_list_says_what_is_not_installed() -> None:
    """An empty one too: whoever applies such an object learns why it is not taken."""
    assert "not installed here, by the values of moorage's chart: DataGrid" in text.table([], missing=["DataGrid"])


def test_it_is_said_since_when_it_stands_where_it_stands() -> None:
    """And whether that is longer than expected; of what is ready there is nothing to say."""
    at = objects.WAITING["status"]["progress"] | {"overdue": True}
    late = objects.WAITING | {"status": objects.WAITING["status"] | {"progress": at}}

    for screen in (text.one_screen, text.explanation):
        assert "2026-01-01T00:00:00Z" in screen([view(objects.WAITING)])
        assert "2026-01-01T00:00:00Z, which is longer than expected" in screen([view(late)])
        assert "Since" not in screen([view(objects.READY)])
