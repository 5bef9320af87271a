"""`moorage krt check`: an archive, a folder or a text, and what it prints and ends with."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import click.testing
import pytest

from moorage import cli
from moorage.operators.kre.krt import check, files

from . import texts
from .test_archive import written

EXAMPLE = Path(__file__).resolve().parents[4] / "examples/kre/greeter"


def run(*words: str | Path) -> click.testing.Result:
    return click.testing.CliRunner().invoke(cli.main, ["krt", "check", *map(str, words)])


def judged(**others: bytes) -> list[str]:
    """What is told of these files beside a good version."""
    contents = texts.files(**others)
    kept = {name: data for name, data in contents.items() if "." in name}
    found = check.judged(files.Files({name: len(data) for name, data in contents.items()}, kept, ()))
    return [
        f"{each.file}:{each.line}:{each.column} {each.severity}: {each.message}; {each.fix}" for each in found.problems
    ]


def without(name: str, *, instead: str = "") -> check.Report:
    """What is told when a file is not there, or elsewhere."""
    contents = texts.files()
    data = contents.pop(name)
    if instead:
        contents[instead] = data
    return check.judged(files.Files({each: len(data) for each, data in contents.items()}, contents, ()))


def test_the_example_can_be_a_version(tmp_path: Path) -> None:
    """As a folder and as an archive; without a word of warning."""
    packed = Path(shutil.make_archive(str(tmp_path / "greeter"), "gztar", EXAMPLE))
    of_folder, of_archive = check.check(EXAMPLE), check.check(packed)

    assert () == of_folder.problems
    assert () == of_archive.problems
    assert of_folder.fit
    assert of_archive.fit
    assert of_folder.krt == of_archive.krt
    assert of_archive.digest.startswith("sha256:")


@pytest.mark.parametrize(
    ("others", "what"),
    [
        (
            {"metrics__dashboards__a.json": b'{\n"a": }'},
            "metrics/dashboards/a.json:2:6 error: it is no JSON: Expecting",
        ),
        ({"metrics__dashboards__a.json": b"\xff\xff"}, "metrics/dashboards/a.json:0:0 error: it is no JSON"),
        ({"metrics__dashboards__a.json": b"[" * 100_000}, "metrics/dashboards/a.json:0:0 error: it is no JSON"),
        ({"krt.yaml": texts.V2.encode()}, ":0:0 error: there are both krt.yml and krt.yaml; remove one of them"),
        (
            {"public_input.proto": b"rpc Greeet (A) returns (B);"},
            "krt.yml:11:17 warning: the proto has no method Greet",
        ),
        ({"public_input.proto": b"// rpc Greet (A)"}, "krt.yml:11:17 warning: the proto has no method Greet"),
        ({"public_input.proto": b"/* rpc Greet (A)\n */"}, "krt.yml:11:17 warning: the proto has no method Greet"),
    ],
)
def test_what_is_wrong_with_the_files_around(others: dict[str, bytes], what: str) -> None:
    """In its own file where it has one."""
    found = judged(**others)

    assert 1 == len(found), found
    assert found[0].startswith(what)


@pytest.mark.parametrize(
    ("name", "instead", "what", "fix"),
    [
        ("src/last.py", "", "src 'src/last.py' is not among the files", "add the file, or correct the name"),
        ("src/last.py", "lib/last.py", "src 'src/last.py' is not among the files", "did you mean lib/last.py?"),
        ("src/last.py", "src/Last.py", "src 'src/last.py' is not among the files", "did you mean src/Last.py?"),
        ("src/last.py", "src/last.py/main.py", "src 'src/last.py' is a folder", "name a file in it"),
        ("public_input.proto", "", "proto 'public_input.proto' is not among the files", "add the file"),
        ("krt.yml", "", "there is no krt.yml in it", "add one, beside the proto"),
        ("krt.yml", "greeter/krt.yml", "krt.yml is not at the top but in greeter/", "-C greeter ."),
    ],
)
def test_a_file_that_is_not_there(name: str, instead: str, what: str, fix: str) -> None:
    """Told where the text names it, with what may have been meant."""
    report = without(name, instead=instead)

    assert not report.fit
    assert [what] == [each.message for each in report.problems]
    assert fix in report.problems[0].fix


def test_a_src_may_be_written_with_a_dot(tmp_path: Path) -> None:
    """It is the same file."""
    text = texts.changed(texts.V2, "src/last.py", "./src//last.py")

    assert check.check(written(tmp_path, texts.files(**{"krt.yml": text}))).fit


def test_what_it_prints_of_a_good_one() -> None:
    """What is in it, and what is needed before it can start."""
    done = run(EXAMPLE)

    assert 0 == done.exit_code
    assert [
        f"{EXAMPLE} can be a version",
        "  Version    greeter-v1 (v2): Says hello, in a friendly way.",
        "  Workflow   greet answers Greet by friendly: hello <- entrypoint; friendly <- hello",
        "  Config     GREETING: each needs a value before it can start",
    ] == done.output.splitlines()[:4]


def test_what_it_prints_of_a_bad_one(tmp_path: Path) -> None:
    """FILE:LINE:COLUMN as editors take it, what to do below it, and a last line that counts."""
    text = texts.changed(texts.V2, "[first]", "[frist]").replace(b"version: greeter", b"version: Greeter")
    done = run(written(tmp_path, texts.files(**{"krt.yml": text})))

    assert 1 == done.exit_code
    lines = done.output.splitlines()
    assert lines[0].startswith(
        f"{tmp_path}/krt.yml:2:10: error: version 'Greeter-v1' can't be part of an object's name"
    )
    assert "    did you mean first?" == lines[3]
    assert f"{tmp_path} can't be a version: 2 errors" == lines[4]


def test_what_the_page_shows_is_what_it_prints(tmp_path: Path) -> None:
    """Of the two slips; the page's commands are run by the tests of the docs."""
    shutil.copytree(EXAMPLE, tmp_path / "greeter")
    text = (EXAMPLE / "krt.yml").read_text().replace("replicas: 2", "replica: 2").replace("- hello\n", "- helo\n")
    (tmp_path / "greeter/krt.yml").write_text(text)
    page = (EXAMPLE.parents[2] / "docs/krt.md").read_text()

    assert run(tmp_path / "greeter").output.replace(str(tmp_path), "/tmp") in page


def test_a_text_alone_can_be_checked(tmp_path: Path) -> None:
    """What it names is not looked for, and that is said."""
    (tmp_path / "krt.yml").write_text(texts.V1)
    done = run(tmp_path / "krt.yml")

    assert 0 == done.exit_code
    assert "Files      not looked at" in done.output
    (tmp_path / "krt.yml").write_text("")
    assert run(tmp_path / "krt.yml").output.startswith(f"{tmp_path}/krt.yml:1:1: error: there is nothing in it")


def test_an_archive_that_is_none(tmp_path: Path) -> None:
    """A problem like others, with the same exit code."""
    (tmp_path / "a.krt").write_bytes(b"no")
    done = run(tmp_path / "a.krt")

    assert 1 == done.exit_code
    assert done.output.startswith(f"{tmp_path}/a.krt: error: it is no .krt archive")


def test_names_in_a_runtime_are_shown(tmp_path: Path) -> None:
    """All of them, a store's too, as they will be in the cluster."""
    text = texts.changed(texts.V2, "replicas: 2", "objectStore: {name: models, scope: project}")
    done = run(written(tmp_path, texts.files(**{"krt.yml": text})), "--runtime", "demo")

    for name in (
        "demo-greeter-v1-entrypoint, when it is published demo-active-entrypoint",
        "demo-greeter-v1-krt-conf, demo-greeter-v1-conf-files",
        "demo_greeter-v1_Greet",
        "demo-greeter-v1-greet-last",
        "demo_greeter-v1_Greet.first",
        "demo_greeter-v1_Greet.entrypoint",
        "key-store_demo_greeter-v1_greet_last",
        "demo_greeter-v1_models",
    ):
        assert f"  {name}\n" in done.output


def test_json_is_for_programs(tmp_path: Path) -> None:
    """All that is known; a bad one too."""
    good = json.loads(run(EXAMPLE, "-o", "json").output)
    bad = run(written(tmp_path, {"a": b""}), "-o", "json")

    assert good["fit"]
    assert "greeter-v1" == good["krt"]["version"]
    assert 1 == bad.exit_code
    assert "there is no krt.yml in it" == json.loads(bad.output)["problems"][0]["message"]


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["/nowhere/a.krt"], "/nowhere/a.krt can't be read: No such file or directory"),
        ([EXAMPLE, "--runtime", "Demo"], "'Demo' can't be a runtime's name"),
        ([EXAMPLE, "--runtime", "d" * 64], "at most 63"),
        ([], "Missing argument 'FILE'"),
    ],
)
def test_what_can_t_be_told(words: list[str | Path], what: str) -> None:
    """With an exit code of its own."""
    done = run(*words)

    assert 3 == done.exit_code
    assert what in done.output
