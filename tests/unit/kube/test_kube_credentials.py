"""Ways in: where they are looked for, and when they are read again."""

from __future__ import annotations

import asyncio
import base64
import os
import pathlib
import sys
from typing import Any

import pytest
import yaml

from moorage.kube import credentials, errors
from moorage.kube import kubeconfig as reading


def write(path: pathlib.Path, text: str) -> None:
    path.write_text(text)


def load(path: pathlib.Path) -> Any:
    return yaml.safe_load(path.read_text())


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def account(tmp_path: pathlib.Path) -> pathlib.Path:
    folder = tmp_path / "serviceaccount"
    folder.mkdir()
    (folder / "token").write_text("first\n")
    (folder / "namespace").write_text("harbour")
    return folder


@pytest.fixture
def kubeconfig(tmp_path: pathlib.Path) -> pathlib.Path:
    """A user by token file, one by exec plugin, one by plain token."""
    plugin = tmp_path / "plugin.py"
    counter = tmp_path / "count"
    plugin.write_text(
        "import json, pathlib\n"
        f"path = pathlib.Path({str(counter)!r})\n"
        "count = int(path.read_text()) + 1 if path.exists() else 1\n"
        "path.write_text(str(count))\n"
        "print(json.dumps({'apiVersion': 'client.authentication.k8s.io/v1', 'kind': 'ExecCredential',"
        " 'status': {'token': f'plugin-{count}'}}))\n"
    )
    (tmp_path / "tokenfile").write_text("from-file\n")
    exec_ = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": sys.executable,
        "args": [str(plugin)],
        "interactiveMode": "Never",
    }
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "plain",
        "clusters": [{"name": "c", "cluster": {"server": "http://c.example/base/", "tls-server-name": "inner"}}],
        "users": [
            {"name": "plain", "user": {"token": "static"}},
            {"name": "file", "user": {"tokenFile": "tokenfile"}},
            {"name": "exec", "user": {"exec": exec_}},
        ],
        "contexts": [
            {"name": name, "context": {"cluster": "c", "user": name, "namespace": f"ns-{name}"}}
            for name in ("plain", "file", "exec")
        ],
    }
    path = tmp_path / "config"
    path.write_text(yaml.safe_dump(content))
    return path


async def test_the_token_file_is_read_each_minute(account: pathlib.Path) -> None:
    clock = Clock()
    found = credentials.InCluster("https://10.0.0.1:443", folder=account, clock=clock)
    assert found.namespace == "harbour"
    (account / "token").write_text("second")
    assert await found.headers() == {"Authorization": "Bearer first"}
    clock.now = 59.9
    assert await found.headers() == {"Authorization": "Bearer first"}
    clock.now = 60
    assert await found.headers() == {"Authorization": "Bearer second"}


async def test_and_when_it_is_refused(account: pathlib.Path) -> None:
    found = credentials.InCluster("https://10.0.0.1:443", folder=account)
    assert not await found.refresh()
    (account / "token").write_text("second")
    assert await found.refresh()
    assert await found.headers() == {"Authorization": "Bearer second"}


def test_in_cluster_addresses(account: pathlib.Path) -> None:
    environ = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "6443"}
    assert credentials.in_cluster(account, environ).server == "https://[fd00::1]:6443"
    with pytest.raises(errors.CredentialsError, match="KUBERNETES_SERVICE_HOST"):
        credentials.in_cluster(account, {})


def test_missing_files_say_which(account: pathlib.Path) -> None:
    environ = {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}
    found = credentials.in_cluster(account, environ)
    with pytest.raises(errors.CredentialsError, match=r"ca\.crt"):
        found.tls()
    (account / "token").unlink()
    with pytest.raises(errors.CredentialsError, match=r"token.*automountServiceAccountToken"):
        credentials.in_cluster(account, environ)


async def test_kubeconfig_contexts(kubeconfig: pathlib.Path) -> None:
    plain = await credentials.from_kubeconfig(kubeconfig)
    assert plain.server == "http://c.example/base"
    assert plain.namespace == "ns-plain"
    assert plain.server_name == "inner"
    assert plain.tls() is None
    assert await plain.headers() == {"Authorization": "Bearer static"}
    assert not await plain.refresh()
    named = await credentials.from_kubeconfig(kubeconfig, "file")
    assert await named.headers() == {"Authorization": "Bearer from-file"}


async def test_a_token_file_of_a_kubeconfig_is_read_again(kubeconfig: pathlib.Path) -> None:
    found = await credentials.from_kubeconfig(kubeconfig, "file")
    (kubeconfig.parent / "tokenfile").write_text("renewed")
    assert await found.refresh()
    assert await found.headers() == {"Authorization": "Bearer renewed"}


async def test_an_exec_plugin_runs_again_when_refused(kubeconfig: pathlib.Path) -> None:
    found = await credentials.from_kubeconfig(kubeconfig, "exec")
    assert await found.headers() == {"Authorization": "Bearer plugin-1"}
    assert await found.headers() == {"Authorization": "Bearer plugin-1"}
    assert await found.refresh()
    assert await found.headers() == {"Authorization": "Bearer plugin-2"}


@pytest.mark.parametrize(
    ("text", "context", "said"),
    [
        (None, None, "no kubeconfig at .*broken"),
        ("{nonsense", None, "broken can't be used"),
        ("contexts: []", "other", "no context named 'other'"),
        (
            "{contexts: [{name: a, context: {cluster: c}}], clusters: [], current-context: a}",
            None,
            "no cluster named 'c'",
        ),
    ],
)
async def test_what_is_wrong_is_said(tmp_path: pathlib.Path, text: str | None, context: str | None, said: str) -> None:
    path = tmp_path / "broken"
    if text is not None:
        path.write_text(text)
    with pytest.raises(errors.CredentialsError, match=said):
        await credentials.from_kubeconfig(path, context)


async def test_a_plugin_that_fails(kubeconfig: pathlib.Path) -> None:
    (kubeconfig.parent / "plugin.py").write_text("raise SystemExit('no login')")
    with pytest.raises(errors.CredentialsError, match="can't be used"):
        await credentials.from_kubeconfig(kubeconfig, "exec")


async def test_several_files_are_merged(kubeconfig: pathlib.Path, tmp_path: pathlib.Path) -> None:
    other = tmp_path / "other"
    context = {"name": "elsewhere", "context": {"cluster": "c", "user": "file"}}
    other.write_text(yaml.safe_dump({"contexts": [context], "clusters": [], "users": []}))
    found = await credentials.from_kubeconfig(f"{kubeconfig}{os.pathsep}{other}", "elsewhere")
    assert await found.headers() == {"Authorization": "Bearer from-file"}


async def test_both_readers_agree(kubeconfig: pathlib.Path, certificate: tuple[str, str]) -> None:
    """What is read without the library is what the library reads."""
    config = load(kubeconfig)
    chain, key = (base64.b64encode(text.encode()).decode() for text in certificate)
    config["clusters"][0]["cluster"] = {"server": "https://c.example:6443", "certificate-authority-data": chain}
    config["users"][0]["user"] = {"client-certificate-data": chain, "client-key-data": key}
    write(kubeconfig, yaml.safe_dump(config))
    for context in ("plain", "file"):
        reader = reading.Reader(str(kubeconfig), context)
        assert await reader.read() == await reader._read_by_library(anew=True)
    found = await credentials.from_kubeconfig(kubeconfig, "plain")
    assert found.tls() is found.tls() is not None


async def test_a_renewed_certificate_is_counted(kubeconfig: pathlib.Path, certificate: tuple[str, str]) -> None:
    """So that connections which were made with the old one are not used again."""
    config = load(kubeconfig)
    chain, key = certificate

    def issue(text: str) -> None:
        given = {"client-certificate-data": text, "client-key-data": key}
        config["users"][0]["user"] = {name: base64.b64encode(value.encode()).decode() for name, value in given.items()}
        write(kubeconfig, yaml.safe_dump(config))

    config["clusters"][0]["cluster"] = {"server": "https://c.example:6443"}
    issue(chain)
    found = await credentials.from_kubeconfig(kubeconfig, "plain")
    assert found.tls() is not None
    assert 0 == found.generation
    issue(chain + chain)

    assert await found.refresh()
    assert 1 == found.generation
    assert not await found.refresh()
    assert 1 == found.generation


async def test_the_library_is_not_loaded_for_a_plain_file(kubeconfig: pathlib.Path) -> None:
    """Its import would make each command of the CLI wait."""
    code = (
        "import asyncio, sys; from moorage.kube import credentials;"
        f"asyncio.run(credentials.from_kubeconfig({str(kubeconfig)!r}));"
        "assert 'kubernetes_asyncio' not in sys.modules"
    )
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", code)
    assert await process.wait() == 0


async def test_order_of_discovery(
    account: pathlib.Path, kubeconfig: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(credentials, "SERVICE_ACCOUNT", account)
    monkeypatch.setattr(credentials.in_cluster, "__defaults__", (account, None))
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    assert (await credentials.discover()).namespace == "ns-plain"
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    assert (await credentials.discover()).namespace == "harbour"
    assert (await credentials.discover(kubeconfig)).namespace == "ns-plain"
    assert (await credentials.discover(context="file")).namespace == "ns-file"
