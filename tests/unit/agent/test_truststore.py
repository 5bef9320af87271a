"""What the server's JVM is told to trust: the same for the same certificates, and readable by Java's own tool."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from pathlib import Path

import msgspec
import pytest

from moorage.agent import document, files, truststore
from tests.unit.agent import played

ONE = """\
-----BEGIN CERTIFICATE-----
MIIBcjCCARmgAwIBAgIUN3NpK/uD4liE1L7wVikrOBX9wxQwCgYIKoZIzj0EAwIw
DjEMMAoGA1UEAwwDb25lMCAXDTI2MTEzMDA5NTY1NloYDzIxMjYxMTA2MDk1NjU2
WjAOMQwwCgYDVQQDDANvbmUwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAARvmSul
ud3vmFpTng+nRrvSrVBAOZC38tybKBhA0Wp6cZzRyEQm8FdTmRQqQMOeErFTHoc4
PoboFgto2+EPuSyCo1MwUTAdBgNVHQ4EFgQU071Z0uKRuuwoCN75lV7h7e8f/Dcw
HwYDVR0jBBgwFoAU071Z0uKRuuwoCN75lV7h7e8f/DcwDwYDVR0TAQH/BAUwAwEB
/zAKBggqhkjOPQQDAgNHADBEAiBeEOs1YkMsOM//nr1/SyDlgZ8wjF4XqVY7kECx
8LlMnAIgGpyhBHDuy6DzzaBv+FJGAWAUAKOGa2CDHfKyLP0hCxA=
-----END CERTIFICATE-----
"""
TWO = """\
-----BEGIN CERTIFICATE-----
MIIBdDCCARmgAwIBAgIUC29/f4a6sM0bbHppSVmc4LScreowCgYIKoZIzj0EAwIw
DjEMMAoGA1UEAwwDdHdvMCAXDTI2MTEzMDA5NTY1NloYDzIxMjYxMTA2MDk1NjU2
WjAOMQwwCgYDVQQDDAN0d28wWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAAQn7pW1
NLT6MnTN1NTW71+XqZhMmzddO+4MDa6+CZuh0jwSPtJmZJw1QV3lSN0fVv4Qxawl
Ek2SToI6kyKnQky+o1MwUTAdBgNVHQ4EFgQU5UPbN+9+++nXop+djW5XZ6IFnpEw
HwYDVR0jBBgwFoAU5UPbN+9+++nXop+djW5XZ6IFnpEwDwYDVR0TAQH/BAUwAwEB
/zAKBggqhkjOPQQDAgNJADBGAiEAqRDS6+1lAAkPdEyubgv3gWaEloh+O9KEHa1p
njCIOYQCIQDTNrGrTHRraWLpm2ojWhrsVnCY5vPG1RAuSb04w3M6JA==
-----END CERTIFICATE-----
"""
FOUND = document.read(
    msgspec.json.encode(played.DOCUMENT | {"tls": {"CAFilePath": "/credentials/ca/ca.crt", "revision": "r"}})
)


def rendered(authority: str, image: str = "") -> dict[str, bytes]:
    return files.rendered(FOUND, {files.AUTHORITIES: image}, files.Secrets("x", authority=authority))


def test_certificates_are_found_once_each_whatever_stands_between() -> None:
    """As programs that write such files put names and dates there."""
    found = truststore.certificates(f"# one\n{ONE}\nand again\n{ONE}{TWO}")

    assert [ssl.PEM_cert_to_DER_cert(ONE), ssl.PEM_cert_to_DER_cert(TWO)] == found
    assert [] == truststore.certificates("")


@pytest.mark.parametrize("text", ["!", "YQ==", ""])
def test_what_is_no_certificate_is_an_error(text: str) -> None:
    """Of which the agent tells; nothing is written then."""
    with pytest.raises(ValueError, match="a certificate that is"):
        truststore.certificates(f"-----BEGIN CERTIFICATE-----{text}-----END CERTIFICATE-----")


def test_too_many_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever writes the ConfigMap could fill the memory otherwise."""
    monkeypatch.setattr(truststore, "MOST", 1)

    with pytest.raises(ValueError, match="2 certificates, and 1 may be"):
        truststore.certificates(ONE + TWO)


@pytest.mark.skipif(shutil.which("keytool") is None, reason="there is no Java here")
def test_java_reads_it(tmp_path: Path) -> None:
    """Both certificates, and its own check finds no damage."""
    path = tmp_path / truststore.FILE
    path.write_bytes(truststore.made(truststore.certificates(ONE + TWO)))
    command = ["keytool", "-list", "-rfc", "-keystore", str(path), "-storetype", "JKS", "-storepass", "changeit"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    assert 0 == done.returncode, done.stdout
    assert truststore.certificates(ONE + TWO) == truststore.certificates(done.stdout)
    assert 2 == done.stdout.count("trustedCertEntry")


def test_the_users_authority_stands_beside_those_of_the_image() -> None:
    """By which Solr and CellBase are known; one that both have is there once."""
    alone, both = rendered(ONE)[truststore.FILE], rendered(ONE, ONE + TWO)[truststore.FILE]

    assert truststore.made(truststore.certificates(ONE)) == alone
    assert truststore.made(truststore.certificates(ONE + TWO)) == both
    assert both == rendered(ONE, ONE + TWO)[truststore.FILE]


def test_without_an_authority_the_jvm_keeps_its_own() -> None:
    """Without TLS, and with TLS by an authority that everybody knows."""
    for tls in (None, {}):
        found = document.read(msgspec.json.encode(played.DOCUMENT | {"tls": tls}))
        assert truststore.FILE not in files.rendered(found, {files.AUTHORITIES: ONE}, files.Secrets("x"))


def test_an_authority_without_a_certificate_is_an_error() -> None:
    """The agent tells it, and the server goes on with what it had."""
    with pytest.raises(ValueError, match="the authority of the database has no certificate"):
        rendered("PEM")
    with pytest.raises(ValueError, match="the authority of the database can't be read"):
        rendered("-----BEGIN CERTIFICATE-----!-----END CERTIFICATE-----")
