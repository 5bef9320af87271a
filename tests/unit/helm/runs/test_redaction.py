"""What helm's words may not tell, in all the forms in which it can show up."""

from __future__ import annotations

import base64
import json
import secrets
import time
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.helm.runs import redaction

LINES = ("MIIEvQIBADANBgkqhkiG9w0BAQEFAASC", "BKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj")
PEM = "\n".join(("-----BEGIN PRIVATE KEY-----", *LINES, "-----END PRIVATE KEY-----"))


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def secret(name: str = "db", **data: str) -> dict[str, Any]:
    return {"kind": "Secret", "metadata": {"name": name}, "data": {key: b64(text) for key, text in data.items()}}


def test_values_under_telling_names_are_replaced_by_their_names() -> None:
    """Ordinary ones stay, as nobody could read the sentence else."""
    values = {
        "db": {"password": "hunter22", "port": 54321, "pin": 123456, "host": "db.example.com"},
        "list": [{"token": 'a"b\\c-long'}],
        "hook": {"event": "failed"},
        "name": "collector",
    }
    said = 'failed: bad "hunter22", pin 123456, "a\\"b\\\\c-long" of collector at db.example.com:54321; xhunter22'

    assert (
        'failed: bad "(values: db.password)", pin (values: db.pin), "(values: list[0].token)" of collector at '
        "db.example.com:54321; x(values: db.password)"
    ) == redaction.redact(said, redaction.of_values(values))


ORDINARY: dict[str, dict[str, Any]] = {
    "a word": {"hook": {"event": "failed"}},
    "a telling word itself": {"auth": {"password": "password"}},
    "the name of a Secret": {"existingSecret": "web-credentials", "passwordSecretRef": {"name": "web-credentials"}},
    "the name of an entry": {"auth": {"passwordKey": "postgres-password"}},
    "pull secrets": {"imagePullSecrets": ["web-credentials", {"name": "web-credentials"}]},
    "an image": {"image": "registry.example.com/team/app:1.27.3-alpine3.19"},
    "a digest": {"image": {"digest": "sha256:" + "0a1b2c3d" * 8}},
    "a long name": {"name": "kubernetes2024release", "camel": "myVeryLongCamelCaseName"},
    "truth, and a port": {"token": True, "secretPort": 8443},
    "a short word in what is called secret": {"secret": {"backend": "vault"}},
}


@pytest.mark.parametrize("values", ORDINARY.values(), ids=ORDINARY)
def test_what_can_be_no_secret_stays(values: dict[str, Any]) -> None:
    """It names what went wrong."""
    said = f"failed at {json.dumps(values)}: vault, True, password, web-credentials"

    assert said == redaction.redact(said, redaction.of_values(values))


def test_names_that_are_kept_stay_even_as_a_password() -> None:
    """The release's name is in every sentence."""
    assert "of web-main" == redaction.redact("of web-main", redaction.of_values({"password": "web-main"}), ["web-main"])


HIDDEN: dict[str, tuple[dict[str, Any], str]] = {
    "random, under any name": ({"extra": {"x": "aZ3kQ9pLm2Xw7RtY"}}, "aZ3kQ9pLm2Xw7RtY"),
    "random, in a line": ({"file": "a: b\nc: aZ3kQ9pLm2Xw7RtY\n"}, "aZ3kQ9pLm2Xw7RtY"),
    "in an address": ({"url": "postgres://app:p%40ss-word@db/x"}, "p@ss-word"),
    "in an address, as it is": ({"url": "postgres://app:p%40ss-word@db/x"}, "p%40ss-word"),
    "in a file": ({"config": "user: bob\npassword: correct horse\n"}, "correct"),
    "in JSON": ({"config": '{"apiKey": "correct horse"}'}, "correct horse"),
    "in a connection string": ({"dsn": "host=db password=correct-horse"}, "correct-horse"),
    "a line of a key": ({"tls": {"privateKey": PEM}}, LINES[1]),
    "a key on one line": ({"tls": {"privateKey": PEM}}, PEM.replace("\n", " ")),
    "a list of tokens": ({"tokens": ["correct-horse"]}, "correct-horse"),
    "below a telling name": ({"credentials": {"smtp": "correct-horse"}}, "correct-horse"),
}


@pytest.mark.parametrize(("values", "text"), HIDDEN.values(), ids=HIDDEN)
def test_what_may_be_a_secret_is_hidden(values: dict[str, Any], text: str) -> None:
    """Wherever it lies in the values."""
    found = redaction.redact(f"bad value: {text}!", redaction.of_values(values))

    assert text not in found
    assert "(values: " in found


TEXT = 'co<r>"rect\n&hörse 77\\'
FORMS = {
    "as it is": TEXT,
    "on one line": " ".join(TEXT.split()),
    "quoted": json.dumps(TEXT, ensure_ascii=False),
    "quoted twice": json.dumps(json.dumps(TEXT, ensure_ascii=False), ensure_ascii=False),
    "as JSON in ASCII": json.dumps(TEXT),
    "as Go's JSON": json.dumps(TEXT, ensure_ascii=False).replace("<", "\\u003c").replace(">", "\\u003e"),
    "in a URL": quote(TEXT, safe=""),
    "in base64": b64(TEXT),
    "in base64 for URLs": base64.urlsafe_b64encode(TEXT.encode()).decode(),
    "in base64 with line breaks": "\n".join(b64(TEXT)[i : i + 8] for i in range(0, len(b64(TEXT)), 8)),
    "in base64 with quoted line breaks": "\\n".join(b64(TEXT)[i : i + 8] for i in range(0, len(b64(TEXT)), 8)),
    "joined": f"user-{TEXT}-more",
}
FORMS["as Go's JSON"] = FORMS["as Go's JSON"].replace("&", "\\u0026")


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_a_secret_is_found_in_every_form(form: str) -> None:
    """As Go, JSON, URLs and Secrets write it."""
    found = redaction.redact(f"failed: <<{form}>>", redaction.of_values({"password": TEXT}))

    assert "(values: password)" in found
    assert not any(part in found for part in ("rect", "rse 77", "rse%2077", b64(TEXT)[4:12]))


@given(before=st.text("abc:", max_size=5), after=st.text("abc@", max_size=5))
def test_a_secret_is_found_inside_what_was_encoded_as_a_whole(before: str, after: str) -> None:
    """As `user:password` of a registry or of basic authentication; at most two characters of it are left."""
    text = "s3cr3t-horse-battery"
    found = redaction.redact(f"auth {b64(before + text + after)} refused", redaction.of_values({"password": text}))

    assert "(values: password)" in found
    assert b64(before + text + after)[8:-8] not in found


def test_what_a_chart_makes_up_is_known_by_its_secrets() -> None:
    """A generated password stands in no value; hooks and plain data count too."""
    known = redaction.of_objects(
        [
            secret(password="gen3rated", event="failed", port="5432"),
            {"kind": "Secret", "metadata": {"name": "plain"}, "stringData": {"a": "given as text"}},
            {"kind": "ConfigMap", "metadata": {"name": "db"}, "data": {"a": "no secret at all"}},
        ]
    )

    assert "failed on 5432: (Secret db: password), (Secret plain: a), no secret at all" == redaction.redact(
        "failed on 5432: gen3rated, given as text, no secret at all", known
    )


def test_a_name_that_stands_for_a_secret_is_not_replaced_again() -> None:
    """One secret may be a part of another's name."""
    known = redaction.of_values({"password": "long-enough", "token": "values"})

    assert "is (values: password), (values: token)" == redaction.redact("is long-enough, values", known)


def test_many_secrets_take_little_time() -> None:
    """A configuration of the largest size, of passwords alone, and long words of helm."""
    values = {"tokens": [secrets.token_hex(16) for _ in range(3000)]}
    begun = time.process_time()

    redaction.redact("x" * 16_000, redaction.of_values(values))

    assert time.process_time() - begun < 2
