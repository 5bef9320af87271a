"""Charts are found in folders, pinned by digest, and kept in a cache that heals."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from moorage.helm.charts import chart_archive, chart_folder, resolver
from moorage.helm.parsing import aside
from moorage.helm.runs import binary


@pytest.fixture
def store(make_chart, tmp_path) -> Path:
    """A folder with several versions, and things that are none."""
    root = tmp_path / "store"
    root.mkdir()
    for version in ("1.0.0", "1.2.0", "1.10.0", "2.0.0-rc.1"):
        (root / f"probe-{version}.tgz").write_bytes(chart_folder.pack(make_chart(version=version))[0])
    (root / "probe-extra-9.0.0.tgz").write_bytes(chart_folder.pack(make_chart(name="probe-extra", version="9.0.0"))[0])
    (root / "README.md").write_text("no chart")
    (root / ".hidden").mkdir()
    return root


@pytest.fixture
async def work():
    made = aside.Aside()
    yield made
    await made.stop()


@pytest.fixture
def found(helm, work, tmp_path) -> resolver.Charts:
    return resolver.Charts(helm, work, tmp_path / "cache")


@pytest.mark.parametrize(
    ("constraint", "version"),
    [
        ("", "1.10.0"),
        ("1.2.0", "1.2.0"),
        ("v1.2.0", "1.2.0"),
        ("^1.0", "1.10.0"),
        ("~1.2", "1.2.0"),
        (">=1.0 <1.5", "1.2.0"),
        ("1.x", "1.10.0"),
        ("2.0.0-rc.1", "2.0.0-rc.1"),
        (">=2.0.0-rc", "2.0.0-rc.1"),
        ("1.2.0 || 9", "1.2.0"),
        (">=1.0, <1.5", "1.2.0"),
    ],
)
async def test_resolve(found, store, constraint, version):
    got = await found.resolve(resolver.FolderSource(str(store)), "probe", constraint)
    assert (got.name, got.version) == ("probe", version)
    assert got.archive.read_bytes() == (store / f"probe-{version}.tgz").read_bytes()
    assert got.contents.version == version


async def test_no_version_matches_lists_what_there_is(found, store):
    with pytest.raises(resolver.NoVersionMatches, match=r"'\^3'.*2\.0\.0-rc\.1, 1\.10\.0, 1\.2\.0, 1\.0\.0") as caught:
        await found.resolve(resolver.FolderSource(str(store)), "probe", "^3")
    assert caught.value.available[0] == "2.0.0-rc.1"
    with pytest.raises(resolver.NoVersionMatches, match="neither a version nor a range"):
        await found.resolve(resolver.FolderSource(str(store)), "probe", "latest!")


@pytest.mark.parametrize("name", ["other", "../probe", "a/b", "", "Probe", "pro"])
async def test_not_found(found, store, name):
    with pytest.raises(resolver.ChartNotFound):
        await found.resolve(resolver.FolderSource(str(store)), name, "")


async def test_a_source_that_is_not_there_is_transient(found, tmp_path):
    with pytest.raises(resolver.SourceUnreachable) as caught:
        await found.resolve(resolver.FolderSource(str(tmp_path / "gone")), "probe", "")
    assert caught.value.transient


async def test_the_pinned_chart_comes_from_the_cache_and_a_damaged_one_is_fetched_again(found, store):
    source = resolver.FolderSource(str(store))
    pinned = await found.resolve(source, "probe", "1.2.0")
    shutil.move(store, store.with_name("away"))
    assert await found.fetch(source, "probe", "1.2.0", pinned.digest) == pinned
    pinned.archive.write_bytes(b"damaged")
    with pytest.raises(resolver.SourceUnreachable):
        await found.fetch(source, "probe", "1.2.0", pinned.digest)
    shutil.move(store.with_name("away"), store)
    again = await found.fetch(source, "probe", "1.2.0", pinned.digest)
    assert again == pinned
    assert again.archive.read_bytes() != b"damaged"


async def test_other_content_under_a_pinned_version_is_refused(found, store, make_chart):
    source = resolver.FolderSource(str(store))
    pinned = await found.resolve(source, "probe", "1.2.0")
    os.unlink(pinned.archive)
    changed, _ = chart_folder.pack(make_chart({"values.yaml": "a: 2\n"}, version="1.2.0"))
    (store / "probe-1.2.0.tgz").write_bytes(changed)
    with pytest.raises(resolver.DigestMismatch) as caught:
        await found.fetch(source, "probe", "1.2.0", pinned.digest)
    assert pinned.digest in str(caught.value)
    assert caught.value.found in str(caught.value)


async def test_a_chart_folder_has_the_digest_of_its_contents(found, make_chart):
    where = make_chart({".helmignore": "*.bak\nnotes/\n", "a.bak": "1", "notes/x": "1"})
    source = resolver.FolderSource(str(where))
    first = await found.resolve(source, "probe", "")
    os.utime(where / "values.yaml", (1, 1))
    (where / "a.bak").write_text("2")
    assert (await found.resolve(source, "probe", "")).digest == first.digest
    assert (await found.fetch(source, "probe", "0.1.0", first.digest)).archive == first.archive
    assert not {"a.bak", "notes/x"} & set(chart_archive.read(first.archive.read_bytes()).files)
    (where / "values.yaml").write_text("a: 1\n")
    assert (await found.resolve(source, "probe", "")).digest != first.digest


async def test_a_folder_of_chart_folders_and_a_single_archive(found, store, make_chart):
    assert (await found.resolve(resolver.FolderSource(str(make_chart().parent)), "probe", "")).version == "0.1.0"
    assert (await found.resolve(resolver.FolderSource(str(store / "probe-1.0.0.tgz")), "probe", "")).version == "1.0.0"


async def test_links_out_of_a_chart_folder_are_refused(found, make_chart):
    where = make_chart()
    (where / "templates/passwd.yaml").symlink_to("/etc/passwd")
    with pytest.raises(resolver.ChartInvalid, match="leads out"):
        await found.resolve(resolver.FolderSource(str(where)), "probe", "")


async def test_a_folder_is_packed_as_helm_would_take_it(helm_path, found, make_chart, tmp_path):
    got = await found.resolve(resolver.FolderSource(str(make_chart())), "probe", "")
    await asyncio.to_thread(subprocess.run, [helm_path, "lint", str(got.archive)], check=True, capture_output=True)


async def test_a_digest_gives_no_other_chart_than_was_asked_for(found, store):
    """It is kept where tenants write, and the cache has charts of all sources."""
    source = resolver.FolderSource(str(store))
    other = await found.resolve(source, "probe-extra", "9.0.0")
    pinned = await found.resolve(source, "probe", "1.2.0")

    for name, version, digest in (("probe", "9.0.0", other.digest), ("probe", "1.0.0", pinned.digest)):
        with pytest.raises(resolver.ChartInvalid, match="and not probe"):
            await found.fetch(source, name, version, digest)


async def test_the_cache_has_a_bound_and_what_is_needed_or_was_just_used_stays(helm, work, store, tmp_path):
    size = max(path.stat().st_size for path in store.glob("*.tgz"))
    found = resolver.Charts(helm, work, tmp_path / "cache", room=2 * size + size // 2)
    source = resolver.FolderSource(str(store))
    first, second = [await found.resolve(source, "probe", version) for version in ("1.0.0", "1.2.0")]

    with pytest.raises(resolver.SourceUnreachable, match="full of charts that are in use"):
        await found.resolve(source, "probe", "1.10.0")
    for chart_ in (first, second):
        os.utime(chart_.archive, (1, 1))
    with pytest.raises(resolver.SourceUnreachable, match="full of charts that are in use"):
        await found.resolve(source, "probe", "1.10.0", {first.digest, second.digest})
    third = await found.resolve(source, "probe", "1.10.0", {first.digest})

    assert [True, False, True] == [each.archive.exists() for each in (first, second, third)]
    assert first == await found.fetch(source, "probe", "1.0.0", first.digest)


# --- a registry ------------------------------------------------------------------------------------------------------


@pytest.fixture
async def registry(tmp_path, helm_path, store):
    """Debian's docker-registry with the charts of `store`."""
    server = shutil.which("docker-registry")
    if server is None:
        pytest.skip("no docker-registry on the PATH")
    config = tmp_path / "registry.yml"
    data = tmp_path / "registry"
    config.write_text(
        f"version: 0.1\nlog: {{level: error}}\nstorage: {{filesystem: {{rootdirectory: {data}}}}}\n"
        "http: {addr: 127.0.0.1:0}\n"
    )
    child = await asyncio.create_subprocess_exec(server, "serve", str(config), stderr=asyncio.subprocess.DEVNULL)
    try:
        url = f"oci://127.0.0.1:{await _listens_at(child.pid)}/charts"
        for path in sorted(store.glob("probe-[12]*.tgz")):
            push = await asyncio.create_subprocess_exec(
                *(helm_path, "push", str(path), url, "--plain-http"), stderr=asyncio.subprocess.PIPE
            )
            _, said = await push.communicate()
            assert push.returncode == 0, said
        yield url
    finally:
        child.terminate()
        await child.wait()


async def _listens_at(pid: int) -> int:
    """The port that the process was given, which nobody else can have."""
    for _ in range(600):
        if port := _listening(Path("/proc"), pid):
            return port
        await asyncio.sleep(0.05)
    pytest.fail("the registry does not listen")


def _listening(proc: Path, pid: int) -> int:
    own = set()
    for each in (proc / str(pid) / "fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # it has just been closed
            own.add(os.readlink(each))
    lines = [line.split() for line in (proc / "net/tcp").read_text().splitlines()[1:]]
    ports = [int(it[1].rpartition(":")[2], 16) for it in lines if it[3] == "0A" and f"socket:[{it[9]}]" in own]
    return ports[0] if ports else 0


async def test_a_registry(found, registry, store):
    source = resolver.OciSource(registry, plain_http=True)
    for constraint, version in (("", "1.10.0"), ("~1.2", "1.2.0"), ("2.0.0-rc.1", "2.0.0-rc.1")):
        got = await found.resolve(source, "probe", constraint)
        assert got.version == version
        assert got.archive.read_bytes() == (store / f"probe-{version}.tgz").read_bytes()
    from_folder = await found.resolve(resolver.FolderSource(str(store)), "probe", "~1.2")
    assert (await found.resolve(source, "probe", "~1.2")).digest == from_folder.digest
    with pytest.raises(resolver.ChartNotFound):
        await found.resolve(source, "nothing", "")
    with pytest.raises(resolver.NoVersionMatches):
        await found.resolve(source, "probe", "^7")
    with pytest.raises(resolver.ChartError):
        await found.resolve(source, "probe", "7.0.0")


async def test_a_missing_helm_is_no_fault_of_the_registry(work, tmp_path):
    helm = binary.Helm(tmp_path / "nowhere", binary.KubeAccess(kubeconfig="/dev/null"), tmp_path / "scratch")
    store = resolver.Charts(helm, work, tmp_path / "cache")

    with pytest.raises(resolver.SourceUnreachable, match=r"nowhere can't be run: .*moorage's own helm") as told:
        await store.resolve(resolver.OciSource("oci://127.0.0.1:1/charts"), "probe", "")

    assert "registry up" not in str(told.value)


async def test_a_registry_that_is_down_is_transient(found):
    with pytest.raises(resolver.SourceUnreachable, match="is the registry up"):
        await found.resolve(resolver.OciSource("oci://127.0.0.1:1/charts", plain_http=True), "probe", "1.0.0")
