"""The command at the prompt: what it says to slips, and with which exit code. No cluster."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from moorage import cli
from moorage.cli import lookup, suggestions


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (["staus"], "did you mean status?"),
        (["status", "colector"], "did you mean Collector?"),
        (["status", "collector/"], "write collector/NAME"),
        (["explain", "collector"], "name one object, such as collector/NAME"),
        (["crds", "colector"], "did you mean collector?"),
    ],
)
def test_a_slip_is_answered_with_what_was_meant(typed: list[str], said: str) -> None:
    """Never with a traceback."""
    done = CliRunner().invoke(cli.main, typed)

    assert said in done.output
    assert done.exit_code not in (0, 2)


@pytest.mark.parametrize("word", ["collector", "Collectors", "col", "collectors.example.com"])
def test_a_kind_has_all_the_names_that_kubectl_knows(word: str) -> None:
    """Kind, plural, short name, plural with group; upper and lower case."""
    assert "Collector" == lookup.wanted(f"{word}/hello", "", None, None).kinds[0].resource.kind


def test_a_missing_kubeconfig_is_named(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """With its path, and without a trace."""
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)

    done = CliRunner().invoke(cli.main, ["status", "--kubeconfig", f"{tmp_path}/none"])

    assert f"{tmp_path}/none" in done.output
    assert "Traceback" not in done.output
    assert done.exit_code == 3


def test_definitions_are_printed_or_written(tmp_path: object) -> None:
    """One file per system."""
    printed = CliRunner().invoke(cli.main, ["crds"]).output

    assert 0 == CliRunner().invoke(cli.main, ["crds", "--into", f"{tmp_path}/crds"]).exit_code
    assert "name: collectors.example.com" in printed


def test_help_lists_the_commands() -> None:
    """What one reads first."""
    shown = CliRunner().invoke(cli.main, ["-h"]).output

    for command in ("run", "crds", "status", "explain", "krt"):
        assert f"  {command}" in shown


def test_unknown_lists_what_there_is() -> None:
    """Also when nothing is near."""
    assert "no kind 'x'; there is: Collector" == suggestions.unknown("kind", "x", ["Collector"])
