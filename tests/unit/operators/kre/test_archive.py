"""What is taken for a `.krt` archive, and what is refused before it does harm: all limits are seen from outside."""

from __future__ import annotations

import gzip
import io
import random
import tarfile
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.operators.kre.krt import archive, files, folder

from . import texts

member = texts.member


def read(data: bytes) -> files.Files:
    return archive.read(io.BytesIO(data), len(data))


def told(data: bytes) -> str:
    return "; ".join(f"{each.message}, {each.fix}" for each in read(data).problems)


def damaged(old: bytes, new: bytes) -> bytes:
    """The tar of a version with one piece exchanged, packed anew."""
    plain = gzip.decompress(texts.packed(texts.files()))
    assert 1 == plain.count(old)
    return gzip.compress(plain.replace(old, new))


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
@pytest.mark.parametrize("top", ["", "./"])
def test_all_files_are_listed_and_some_are_looked_into(form: int, top: str) -> None:
    """Whoever packed them, from inside the folder; a name that needs a header of its own too."""
    long = "models/" + "x" * 80 + "/" + "y" * 120
    contents = texts.files() | {
        "a/krt.yml": b"no",
        "metrics/dashboards/a.json": b"{}",
        "x.json": b"{",
        long: b"m" * 999,
    }
    if form == tarfile.USTAR_FORMAT:
        del contents[long]
    entries = [(member(f"{top}{name}", len(data)), data) for name, data in contents.items()]
    found = read(texts.archive((member(f"{top}src", kind=tarfile.DIRTYPE), b""), *entries, form=form))

    assert () == found.problems
    assert {name: len(data) for name, data in contents.items()} == found.sizes
    looked_into = {"krt.yml", "public_input.proto", "metrics/dashboards/a.json"}
    assert {name: contents[name] for name in looked_into} == found.texts
    assert "krt.yml" == found.manifest


@pytest.mark.parametrize(
    "name",
    ["/etc/passwd", "../x", "a/../../x", "a/..", "..", "a\\..\\x", "C:x", "a\x07", "a\nb", "\udcff", "x" * 501],
    ids=repr,
)
def test_names_that_lead_out_or_can_t_be_told(name: str) -> None:
    """With what was read of the rest."""
    data = texts.archive((member(name, 1), b"x"), (member("krt.yml", 1), b"x"))

    assert 1 == len(read(data).problems)
    assert {"krt.yml"} == set(read(data).sizes)
    told(data).encode()  # it can be printed


KINDS = [
    (tarfile.SYMTYPE, "is a link, pack what it leads to"),
    (tarfile.LNKTYPE, "is a link, pack what it leads to"),
    (tarfile.CHRTYPE, "is neither a file nor a folder"),
    (tarfile.BLKTYPE, "is neither a file nor a folder"),
    (tarfile.FIFOTYPE, "is neither a file nor a folder"),
    (tarfile.CONTTYPE, "is neither a file nor a folder"),
    (b"Z", "is neither a file nor a folder"),
]


@pytest.mark.parametrize(("kind", "what"), KINDS)
def test_what_is_no_file(kind: bytes, what: str) -> None:
    """It may lead anywhere, so it is no file of that name either."""
    data = texts.archive((member("src/first.py", 0, kind, "/etc/passwd"), b""))

    assert f"src/first.py {what}" in told(data)
    assert {} == read(data).sizes


@pytest.mark.parametrize(
    ("names", "what"),
    [
        (["a", "a"], "a is in it twice, remove one of them"),
        (["a", "./a"], "a is in it twice"),
        (["a", "a/b"], "a/b is a file and a folder"),
        (["a/b", "a"], "a is a file and a folder"),
        (["a", "a/"], "a is a file and a folder"),
    ],
)
def test_what_unpackers_read_differently(names: list[str], what: str) -> None:
    """Of two of a name, some take the first and some the last."""
    entries = [(member(name, 0, tarfile.DIRTYPE if name.endswith("/") else tarfile.REGTYPE), b"") for name in names]

    assert what in told(texts.archive(*entries))


def huge(size: int, kind: bytes = tarfile.REGTYPE) -> bytes:
    """A header that says how much follows, and nothing behind it."""
    return gzip.compress(member("a", size, kind).tobuf(tarfile.GNU_FORMAT))


def sparse() -> bytes:
    """A file with holes: a few bytes that become as many as it likes."""
    info = member("a", 0, tarfile.REGTYPE)
    info.pax_headers = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.realsize": str(1 << 40)}
    info.pax_headers |= {"GNU.sparse.name": "a"}
    content = b"1\n0\n0\n".ljust(512, b"\0")
    info.size = len(content)
    return texts.archive((info, content), form=tarfile.PAX_FORMAT)


def endless_sparse() -> bytes:
    """Holes whose list never ends."""
    info = member("a", 512)
    info.pax_headers = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.name": "a"}
    plain = gzip.decompress(texts.archive((info, b"1000000\n".ljust(512, b"x")), form=tarfile.PAX_FORMAT))
    return gzip.compress(plain[: 4 * 512])


def extended(content: bytes, kind: bytes = tarfile.XHDTYPE) -> bytes:
    """A header that extends the next one."""
    return texts.archive((member("h", len(content), kind), content), (member("a"), b""))


REFUSED = {
    "nothing": (b"", "is cut off"),
    "text": (b"version: a\n", "it is no .krt archive, a tar in a gzip"),
    "no tar": (gzip.compress(b"x" * 2000), "it is no .krt archive, a tar in a gzip"),
    "an empty gzip": (gzip.compress(b""), "is cut off"),
    "half": (texts.packed(texts.files())[:200], "is cut off"),
    "without an end": (gzip.compress(gzip.decompress(texts.packed(texts.files()))[:1024]), "is cut off"),
    "a wrong checksum": (damaged(b"public_input.proto\0", b"Public_input.proto\0"), "a header in it is damaged"),
    "garbage in a gzip": (texts.packed({})[:-8] + b"\0" * 8, "it is no .krt archive, a tar in a gzip"),
    "something behind the gzip": (texts.packed({"a": b""}) + b"x" * 100, "it is no .krt archive, a tar in a gzip"),
    "something behind the tar": (gzip.compress(gzip.decompress(texts.packed({})) + b"x"), "follows the end"),
    "a second tar": (gzip.compress(2 * gzip.decompress(texts.packed({"a": b""}))), "follows the end"),
    "a large file": (huge(files.MAX_FILE + 1), f"a has {files.MAX_FILE + 1} bytes; a file may have"),
    "a large text": (
        texts.archive((member("a.proto", 1), b"x"), (member("b.proto", files.MAX_KEPT), b"x" * files.MAX_KEPT)),
        "its krt.yml, protos and dashboards have more than",
    ),
    "many files": (
        texts.archive(*((member(f"d{n}", kind=tarfile.DIRTYPE), b"") for n in range(files.MAX_FILES + 1))),
        "more than 10000 files and folders",
    ),
    "a size below zero": (huge(-1024), "size below zero"),
    "a link of a size below zero": (huge(-1024, b"Z"), "size below zero"),
    "a cut file": (huge(1000), "is cut off"),
    "a large header": (extended(b"x" * (64 << 10)), "bytes of headers before a file"),
    "a large name": (extended(b"x" * (64 << 10), tarfile.GNUTYPE_LONGNAME), "bytes of headers before a file"),
    "a header of a long number": (extended(b"9" * 300), "a number of hundreds of digits"),
    "many headers": (
        texts.archive(*((member("g", 512, tarfile.XHDTYPE), b"512 comment=".ljust(511, b"x") + b"\n"),) * 40),
        "bytes of headers before a file",
    ),
    "a header that is none": (extended(b"0 a=b\n"), "is"),
    "an endless list of holes": (endless_sparse(), "cut off"),
}


@pytest.mark.parametrize(("data", "what"), REFUSED.values(), ids=REFUSED)
def test_what_can_t_be_read_to_its_end(data: bytes, what: str) -> None:
    """Nothing of it is used."""
    with pytest.raises(archive.KrtError) as refused:
        read(data)

    assert what in refused.value.message
    assert refused.value.fix


def test_a_file_with_holes_is_none() -> None:
    """Whatever size it claims."""
    assert "a is neither a file nor a folder" in told(sparse())


def test_together_files_may_not_be_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of them may be."""
    monkeypatch.setattr(files, "MAX_UNPACKED", 1000)

    with pytest.raises(archive.KrtError, match="the files have more than 1000 bytes"):
        read(texts.packed({"a": b"x" * 600, "b": b"x" * 600}))


def test_the_archive_itself_may_not_be_too_large() -> None:
    """It is not even opened."""
    with pytest.raises(archive.KrtError, match=f"at most {files.MAX_PACKED} are read"):
        archive.read(io.BytesIO(b""), files.MAX_PACKED + 1)


def test_little_memory_is_used_for_much() -> None:
    """A thousand times what is packed goes through, and is not kept."""
    data = texts.packed({"model": b"\0" * (64 << 20), "krt.yml": b""})
    assert len(data) < 1 << 20
    tracemalloc.start()
    try:
        found = read(data)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert 64 << 20 == found.sizes["model"]
    assert peak < 4 << 20


def test_an_archive_is_known_by_its_bytes() -> None:
    """From the start, wherever it was read to."""
    file = io.BytesIO(b"abc")
    file.read()

    assert "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" == archive.digest(file)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 8), st.sampled_from(["tar", "gzip"]))
def test_no_archive_is_a_surprise(seed: int, changes: int, where: str) -> None:
    """Bytes of a good one changed anywhere: it is read, or refused with words, and never anything else."""
    rng = random.Random(seed)
    data = bytearray(texts.archive(*ENTRIES, form=tarfile.PAX_FORMAT) if where == "gzip" else PLAIN)
    for _ in range(changes):
        at = rng.randrange(len(data))
        match rng.randrange(3):
            case 0:
                data[at] = rng.randrange(256)
            case 1:
                data[at : at + 8] = rng.choice([b"\xff" * 8, b"\x80" + b"\0" * 7, b"99999999", b"\0" * 8, b"-1      "])
            case _:
                del data[at : at + rng.randrange(1024)]
        if not data:
            return
    try:
        found = read(bytes(data) if where == "gzip" else gzip.compress(bytes(data), 1))
    except archive.KrtError:
        return
    for name in found.sizes:
        assert not name.startswith("/")
        assert ".." not in name.split("/")
    for each in found.problems:
        each.message.encode()


LONG = member("d/" + "n" * 150, 700)
LONG.pax_headers = {"SCHILY.xattr.user.a": "b", "mtime": "1700000000.123456789"}
ENTRIES = ((member("krt.yml", 20), b"x" * 20), (LONG, b"y" * 700), (member("e", 0, tarfile.SYMTYPE, "d"), b""))
PLAIN = gzip.decompress(texts.archive(*ENTRIES, form=tarfile.PAX_FORMAT))


# --- folders ------------------------------------------------------------------------------------------------------


def written(where: Path, contents: dict[str, bytes]) -> Path:
    for name, data in contents.items():
        (where / name).parent.mkdir(parents=True, exist_ok=True)
        (where / name).write_bytes(data)
    return where


def test_a_folder_is_read_as_its_archive_would_be(tmp_path: Path) -> None:
    """Name for name, byte for byte."""
    contents = texts.files(metrics__dashboards__a=b"", docs__README=b"x")
    found = folder.read(written(tmp_path, contents))

    assert read(texts.packed(contents)).texts == found.texts
    assert read(texts.packed(contents)).sizes == found.sizes
    assert () == found.problems


def test_links_of_a_folder_are_not_followed(tmp_path: Path) -> None:
    """Neither to files nor to folders, as an archive may hold none."""
    written(tmp_path, texts.files())
    (tmp_path / "out").symlink_to("/")
    (tmp_path / "also").symlink_to("krt.yml")
    found = folder.read(tmp_path)

    assert ["also is a link", "out is a link"] == [each.message for each in found.problems]
    assert set(texts.files()) == set(found.sizes)


def test_a_folder_beyond_the_limits_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As when an environment lies in it."""
    monkeypatch.setattr(files, "MAX_FILES", 3)

    with pytest.raises(files.KrtError, match="more than 3 files and folders"):
        folder.read(written(tmp_path, texts.files()))
