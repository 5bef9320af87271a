"""The layout of an image archive, and that the same content gives the same bytes."""

import hashlib
import importlib.util
import io
import json
import os
import tarfile
from pathlib import Path

from tb.images import archive, bytecode, recipe, spec
from tb.images.archive import Entry


def names(layer: bytes) -> list[str]:
    with tarfile.open(fileobj=io.BytesIO(layer)) as tar:
        return tar.getnames()


def build(folder: Path, text: str) -> Path:
    (folder / "spec.toml").write_text(text)
    out = folder / "out.tar"
    recipe.build(spec.read(folder / "spec.toml", {}), out, folder / "cache")
    return out


def test_an_archive_is_what_a_container_engine_saves(tmp_path: Path) -> None:
    layer = archive.layer([Entry.file("bin/app", b"x", 0o755)])
    archive.write(tmp_path / "image.tar", "app:1", [layer], archive.Settings(entrypoint=("/bin/app",), user="1:1"))
    with tarfile.open(tmp_path / "image.tar") as tar:
        content = {member.name: tar.extractfile(member).read() for member in tar}  # type: ignore[union-attr]
    (manifest,) = json.loads(content["manifest.json"])
    configuration = content[manifest["Config"]]
    assert manifest["RepoTags"] == ["app:1"]
    assert manifest["Config"] == f"{hashlib.sha256(configuration).hexdigest()}.json"
    assert content[manifest["Layers"][0]] == layer
    decoded = json.loads(configuration)
    assert decoded["rootfs"]["diff_ids"] == [f"sha256:{hashlib.sha256(layer).hexdigest()}"]
    assert decoded["config"]["Entrypoint"] == ["/bin/app"]
    assert decoded["config"]["User"] == "1:1"


def test_a_layer_does_not_depend_on_order_and_names_every_folder() -> None:
    entries = [Entry.file("b/c/d", b"1"), Entry.file("a", b"2"), Entry.link("e", "a")]
    assert archive.layer(entries) == archive.layer(reversed(entries))
    assert names(archive.layer(entries)) == ["a", "b", "b/c", "b/c/d", "e"]


def test_the_later_of_two_entries_wins() -> None:
    layer = archive.layer([Entry.file("a", b"old"), Entry.file("a", b"new")])
    with tarfile.open(fileobj=io.BytesIO(layer)) as tar:
        assert tar.extractfile("a").read() == b"new"  # type: ignore[union-attr]


def test_an_image_of_files_is_the_same_again(tmp_path: Path) -> None:
    text = 'name = "a:1"\ncompile = ["/app"]\nprune = ["/app/docs"]\n[[files]]\nsource = "src"\ntarget = "/app"\n'
    made = []
    for place in ("one", "two"):
        source = tmp_path / place / "src"
        (source / "docs").mkdir(parents=True)
        (source / "__pycache__").mkdir()
        (source / "docs/long.txt").write_text("long")
        (source / "__pycache__/app.pyc").write_text("stale")
        (source / "app.py").write_text("VALUE = 1\n")
        os.utime(source / "app.py", (len(made), len(made)))
        made.append(build(tmp_path / place, text).read_bytes())
    assert made[0] == made[1]
    with tarfile.open(fileobj=io.BytesIO(made[0])) as tar:
        layer = tar.extractfile(tar.getmembers()[0]).read()  # type: ignore[union-attr]
    assert names(layer) == ["app", "app/__pycache__", "app/__pycache__/app.cpython-311.pyc", "app/app.py"]


def test_byte_code_is_good_for_a_read_only_root() -> None:
    entries = [Entry.file("app/good.py", b"VALUE = 7\n"), Entry.file("app/bad.py", b"def\n"), Entry.file("no.py", b"")]
    (made,) = bytecode.compiled(entries, ("/app",))
    assert made.path == "app/__pycache__/good.cpython-311.pyc"
    content = made.content or b""
    assert content[:4] == importlib.util.MAGIC_NUMBER
    # The flags: tied to a hash that is not checked.
    assert content[4:8] == b"\x01\0\0\0"
