"""How requests are counted from the audit log."""

from __future__ import annotations

import itertools
import json
import os

import msgspec

from benchmarks import measure

USER = "system:serviceaccount:accounts:someone"


def _line(verb, code, *, stage="ResponseComplete", resource="configmaps", user=USER, at="00", name="", ends=""):
    return {
        "stage": stage,
        "verb": verb,
        "user": {"username": user},
        "objectRef": {"resource": resource, "name": name},
        "responseStatus": {"code": code},
        "requestReceivedTimestamp": f"2026-01-01T00:00:{at}.000000Z",
        "stageTimestamp": f"2026-01-01T00:00:{ends or at}.500000Z",
    }


def _decoded(*lines):
    return [msgspec.convert(line, measure.Request) for line in lines]


def test_writes_are_those_that_succeeded_and_the_others_are_refused():
    """Reads are requests too, another user's are not."""
    asked = measure.count(
        _decoded(
            _line("patch", 200),
            _line("create", 201),
            _line("update", 409),
            _line("list", 200),
            _line("patch", 200, user="somebody else"),
        ),
        USER,
    )

    assert measure.Asked(writes=2, refused=1, requests=4, watches=0) == asked


def test_a_watch_counts_once_when_it_begins():
    """Its end is no request."""
    lines = _decoded(_line("watch", 200, stage="ResponseStarted"), _line("watch", 200))

    assert measure.Asked(requests=1, watches=1) == measure.count(lines, USER)


def test_leases_are_left_out():
    """They are renewed whatever happens."""
    assert measure.Asked() == measure.count(_decoded(_line("update", 200, resource="leases")), USER)


def test_the_span_of_writes_reaches_from_the_first_receipt_to_the_last_answer():
    """In any order of lines; reads do not count."""
    lines = _decoded(
        _line("patch", 200, at="07"),
        _line("patch", 200, at="02"),
        _line("get", 200, at="01"),
        _line("get", 200, at="09"),
    )

    assert 5.5 == measure.span(lines, USER)
    assert 0.0 == measure.span([], USER)


def test_the_log_is_read_on_from_its_end_and_a_line_only_when_it_is_whole(tmp_path):
    """The server may be in the middle of a line."""
    file = tmp_path / "audit.log"
    file.write_text(json.dumps(_line("get", 200)) + "\n")
    log = measure.AuditLog(file)
    half = json.dumps(_line("patch", 200)) + "\n"
    with file.open("a") as end:
        end.write(half[:40])
        end.flush()

        assert [] == log.read()

        end.write(half[40:])
        end.flush()

        assert ["patch"] == [line.verb for line in log.read()]


def test_a_process_has_used_something():
    """Of this machine's own /proc."""
    pid = os.getpid()
    now, peak = measure.memory(pid)

    assert 0 < now <= peak
    assert 0 < measure.fine_cpu(pid)


def test_the_writes_of_a_user_are_those_answered_well_in_the_order_of_their_receipt():
    """Those of leases apart from all others."""
    lines = _decoded(
        _line("patch", 200, at="03"),
        _line("create", 201, at="01"),
        _line("patch", 409, at="02"),
        _line("get", 200, at="02"),
        _line("patch", 200, at="02", user="somebody else"),
        _line("patch", 200, at="02", resource="leases"),
    )

    begun = [measure.begun(line) for line in measure.writes(lines, USER)]
    assert [2.0] == [b - a for a, b in itertools.pairwise(begun)]
    (lease,) = measure.writes(lines, USER, leases=True)
    assert 0.5 == measure.ended(lease) - measure.begun(lease)


def test_two_users_overlap_where_they_write_the_same_widget_at_the_same_time():
    """A Widget and its ConfigMap are one key; one user's own writes may overlap."""
    other = "another"
    lines = _decoded(
        _line("patch", 200, name="a", at="01", ends="09"),
        _line("patch", 200, name="a-widget", at="04", user=other),
        _line("patch", 200, name="b", at="01", ends="02"),
        _line("patch", 200, name="b", at="03", user=other),
        _line("patch", 200, name="c", at="01", ends="05"),
        _line("patch", 200, name="c-widget", at="02"),
    )

    assert {"a"} == measure.overlaps(lines, [USER, other])
    assert set() == measure.overlaps(lines, [USER])
