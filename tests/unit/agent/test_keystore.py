"""What servers show the database: from each form in which a key is written, and readable by Java's own tools."""

from __future__ import annotations

import base64
import shutil
import subprocess
from pathlib import Path

import msgspec
import pytest

from moorage.agent import document, files, keystore, truststore
from tests.unit.agent import played, test_truststore

NO_KEY = "-----BEGIN PRIVATE KEY-----\nMA==\n-----END PRIVATE KEY-----\n"


def openssl(*args: str) -> str:
    return subprocess.run(["openssl", *args], capture_output=True, text=True, timeout=60, check=True).stdout


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[str, str]]:
    """(certificate, key) by the form of the key."""
    if shutil.which("openssl") is None:
        pytest.skip("there is no openssl here")
    found, folder = {}, tmp_path_factory.mktemp("pairs")
    for name, kind in {"rsa": ["rsa:2048"], "ec": ["ec", "-pkeyopt", "ec_paramgen_curve:P-256"]}.items():
        key, certificate = folder / f"{name}.key", folder / f"{name}.crt"
        to = ["-keyout", str(key), "-out", str(certificate), "-subj", f"/CN={name}", "-days", "3650"]
        openssl("req", "-x509", "-nodes", "-newkey", *kind, *to)
        found[name] = certificate.read_text(), key.read_text()
        old = openssl("pkey", "-in", str(key), "-traditional")
        found[f"{name}, of old"] = certificate.read_text(), old
    return found


FORMS = ("rsa", "rsa, of old", "ec", "ec, of old")


@pytest.mark.skipif(shutil.which("keytool") is None, reason="there is no Java here")
@pytest.mark.parametrize("form", FORMS)
def test_java_takes_certificate_and_key(tmp_path: Path, pairs: dict[str, tuple[str, str]], form: str) -> None:
    """It makes of it a store of another kind, for which it must read the key, and that has the same key."""
    certificate, key = pairs[form]
    path, other = tmp_path / keystore.FILE, tmp_path / "other.p12"
    path.write_bytes(keystore.made(certificate, key))
    words = [
        "-srcstoretype",
        "JKS",
        "-srcstorepass",
        "changeit",
        "-deststoretype",
        "PKCS12",
        "-deststorepass",
        "changeit",
    ]
    command = ["keytool", "-importkeystore", "-srckeystore", str(path), "-destkeystore", str(other), *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)

    assert 0 == done.returncode, done.stdout + done.stderr
    read = openssl("pkcs12", "-in", str(other), "-nodes", "-passin", "pass:changeit")
    assert truststore.certificates(certificate) == truststore.certificates(read)
    assert keystore._private(pairs[form.partition(",")[0]][1]) == keystore._private(read)


def test_what_is_made_of_the_same_is_the_same(pairs: dict[str, tuple[str, str]]) -> None:
    """So that nobody is restarted for nothing; of RSA also from the other form of the same key."""
    for form in FORMS:
        assert keystore.made(*pairs[form]) == keystore.made(*pairs[form])
    assert keystore.made(*pairs["rsa"]) == keystore.made(*pairs["rsa, of old"])
    assert keystore.made(*pairs["rsa"]) != keystore.made(*pairs["ec"])


def pem(kind: str, der: bytes) -> str:
    return f"-----BEGIN {kind}-----\n{base64.b64encode(der).decode()}\n-----END {kind}-----\n"


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("", "tls.key has no private key"),
        ("-----BEGIN PRIVATE KEY-----\nMA==\n-----END RSA PRIVATE KEY-----\n", "tls.key has no private key"),
        (NO_KEY, "the key in tls.key can't be read"),
        (pem("PRIVATE KEY", b""), "can't be read"),
        (pem("PRIVATE KEY", b"\x31\x00"), "can't be read"),
        (pem("PRIVATE KEY", b"\x30\x00more"), "can't be read"),
        (pem("EC PRIVATE KEY", b"\x30\x03\x02\x01\x01"), "can't be read"),
        (pem("EC PRIVATE KEY", b"\x30\x03\xa0\x09\x01"), "can't be read"),
        (pem("ENCRYPTED PRIVATE KEY", b"\x30\x00"), "of the kind ENCRYPTED PRIVATE KEY, and must have a plain one"),
        ("-----BEGIN PRIVATE KEY-----\nSecr!t\n-----END PRIVATE KEY-----\n", "can't be read"),
    ],
)
def test_what_is_no_key_is_told_without_it(key: str, words: str) -> None:
    """And what is no certificate."""
    with pytest.raises(ValueError, match=words) as told:
        keystore.made(test_truststore.ONE, key)
    assert "Secr" not in str(told.value)
    with pytest.raises(ValueError, match=r"tls.crt has no certificate"):
        keystore.made("", pem("PRIVATE KEY", b"\x30\x00"))


def test_it_is_a_file_of_the_product_where_the_document_says_so(pairs: dict[str, tuple[str, str]]) -> None:
    """Beside the authority or without it; one that can't be used is an error, by which nothing is written."""
    tls = {"certificateFile": "/c/tls.crt", "keyFile": "/c/tls.key", "certificateRevision": "r"}
    found = document.read(msgspec.json.encode(played.DOCUMENT | {"tls": tls}))
    certificate, key = pairs["rsa"]
    made = files.rendered(found, {}, files.Secrets("x", certificate=certificate, key=key))

    assert keystore.made(certificate, key) == made[keystore.FILE]
    assert keystore.FILE in files.ALL
    assert truststore.FILE not in made
    assert key not in repr(files.Secrets("x", key=key))
    assert keystore.FILE not in files.rendered(
        document.read(msgspec.json.encode(played.DOCUMENT)), {}, files.Secrets("x")
    )
    with pytest.raises(ValueError, match=r"for the database can't be used: tls.key has no private key"):
        files.rendered(found, {}, files.Secrets("x", certificate=certificate))
