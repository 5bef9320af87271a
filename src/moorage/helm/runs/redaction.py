"""What helm's words may not tell: texts that may be secrets, and their removal from a message in every form. Pure.

Helm and the API server quote what they were given, and what a chart made of it. A text may be a secret when it is the
content of a Secret, when it is given under a name such as `password`, or when it looks random. What is none of these
stays: a sentence whose ordinary words were replaced, as they are some value too, tells nobody anything.
"""

from __future__ import annotations

import base64
import binascii
import itertools
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, TypeAlias
from urllib.parse import quote, quote_plus, unquote

__all__ = ["Secrets", "of_objects", "of_values", "redact"]

Secrets: TypeAlias = Mapping[str, str]
"""By the text that may not be told, what is said in its place, such as `values: db.password`."""

SHORTEST = 4  # characters; less would be found everywhere
WORD = 8  # characters from which a plain word in a Secret, a line of a text, or a part of a word counts
RANDOM = 16  # characters from which a text can look random


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_TELLING = _words(
    "password passwords passwd pwd pw pass passphrase passcode pin psk secret secrets token tokens credential "
    "credentials apikey apikeys bearer jwt htpasswd dsn"
)
_KEYS = _words(
    "api access private secret encryption signing master license ssh account shared storage auth host session cookie"
)
"""Before `key`, which else is the name of an entry."""

_REFERS = _words(
    "name names ref reference key keys file path dir mount enabled enable create type ttl expiry expiration "
    "length policy algorithm mode namespace volume class field issuer url uri endpoint header count size "
    "interval timeout annotations labels required rotation provider store prefix suffix"
)
"""What comes last in a name that speaks about a secret and does not hold it."""

_EVERYDAY = _TELLING | _words(
    "true false null none yes default admin root user username changeme localhost pre-install post-install pre-upgrade "
    "post-upgrade pre-rollback post-rollback pre-delete post-delete"
)
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_TOKEN = re.compile(r"[A-Za-z0-9+/=]{16,}")
_DIGEST = re.compile(r"\bsha(?:1|256|384|512):[0-9a-f]+")
_USER_INFO = re.compile(r"://[^/\s:@]*:([^/\s@]+)@")
_ENTRY = re.compile(r"""["']?([A-Za-z][\w.-]*)["']?\s*[:=]\s*(?:"([^"]+)"|'([^']+)'|([^\s,;&"']+))""")


def of_values(values: Mapping[str, Any], said: str = "values") -> dict[str, str]:
    """What may be secret among a chart's values, those of the user or its own."""
    found: dict[str, str] = {}
    for path, text in _leaves(values, ()):
        own, within = _tells(path)
        for part in _parts(text, named=own or within, plain=not own):
            found.setdefault(part, f"{said}: {_written(path)}")
    return found


def of_objects(objects: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """What the Secrets among a manifest's objects hold."""
    found: dict[str, str] = {}
    for body in objects:
        if body.get("kind") != "Secret":
            continue
        name = (body.get("metadata") or {}).get("name")
        for key, text in _content(body):
            for part in _parts(text, named=True, plain=not _names_a_secret(key)):
                found.setdefault(part, f"Secret {name}: {key}")
    return found


def redact(message: str, secrets: Secrets, keep: Collection[str] = ()) -> str:
    """`message` with every secret, in whatever form, replaced by its name, as in `(values: db.password)`.

    `keep` holds texts that are no secret even if they are a value too, such as the release's name.
    """
    bare = re.sub(r"\s|\\n", "", message)
    begins = {text[at : at + SHORTEST] for text in (message, bare) for at in range(len(text))}  # most are told by it
    found: dict[str, str] = {}
    patterns: dict[str, str] = {}
    for text, name in secrets.items():
        if text in keep:
            continue
        for form in _plain_forms(text):
            if form[:SHORTEST] in begins and form not in patterns and form in message:
                patterns[form], found[form] = _edged(form), name
        for form in _encoded_forms(text):
            if form[:SHORTEST] in begins and form not in patterns and form in bare:
                patterns[form], found[form] = r"(?:\s|\\n)*".join(map(re.escape, form)), name
    if not patterns:
        return message
    longest = sorted(patterns, key=len, reverse=True)
    whole = re.compile("|".join(f"({patterns[form]})" for form in longest))
    return whole.sub(lambda match: f"({found[longest[(match.lastindex or 1) - 1]]})", message)


# --- what may be secret ---------------------------------------------------------------------------------------------


def _leaves(node: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    if isinstance(node, Mapping):
        for key, value in node.items():
            yield from _leaves(value, (*path, str(key)))
    elif isinstance(node, list | tuple):
        for index, value in enumerate(node):
            yield from _leaves(value, (*path, f"[{index}]"))
    elif isinstance(node, str):
        yield path, node
    elif isinstance(node, int | float) and not isinstance(node, bool):
        yield path, str(node)


def _written(path: tuple[str, ...]) -> str:
    return ".".join(path).replace(".[", "[")


def _tells(path: tuple[str, ...]) -> tuple[bool, bool]:
    """Whether its own name tells of a secret, and whether that of what it is in does."""
    *outer, own = [part for part in path if not part.startswith("[")] or [""]
    refers = bool(words := _split(own)) and words[-1] in _REFERS
    return _names_a_secret(own), not refers and any(_names_a_secret(name) for name in outer)


def _names_a_secret(name: str) -> bool:
    words = _split(name)
    if not words or "existing" in words or "pull" in words:
        return False
    if words[-1] in ("key", "keys"):
        return len(words) > 1 and words[-2] in _KEYS
    return not _TELLING.isdisjoint(words) and words[-1] not in _REFERS


def _split(name: str) -> list[str]:
    return [word.lower() for word in _WORDS.findall(name)]


def _content(secret: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for key, text in (secret.get("stringData") or {}).items():
        yield str(key), str(text)
    for key, text in (secret.get("data") or {}).items():
        try:
            yield str(key), base64.b64decode(str(text)).decode()
        except (binascii.Error, UnicodeDecodeError):
            yield str(key), str(text)


def _parts(text: str, *, named: bool, plain: bool = False) -> Iterator[str]:
    """What of a value may be secret. `named`: all of it, by its name; `plain`: but for a word that is in no way odd."""
    text = text.strip()
    lines = text.splitlines()
    if named and not _is_everyday(text, plain=plain):
        yield text
    for line in lines if named and len(lines) > 1 else ():
        if len(line.strip()) >= WORD:
            yield line.strip()
    yield from _random(text)
    for match in _USER_INFO.finditer(text):
        yield from {match[1], unquote(match[1])}
    for match in _ENTRY.finditer(text):
        inner = match[2] or match[3] or match[4]
        if _names_a_secret(match[1]) and not _is_everyday(inner):
            yield inner


def _is_everyday(text: str, *, plain: bool = False) -> bool:
    """Found in ordinary sentences, so that nobody can say that it is a secret."""
    if len(text) < SHORTEST or text.lower() in _EVERYDAY:
        return True
    if len(text) < 6 and text.replace(".", "", 1).isdigit():
        return True
    return plain and len(text) < WORD and text.isalpha() and text.islower()


def _random(text: str) -> Iterator[str]:
    """Letters and digits that take turns as in no word: a key, a token, a line of a certificate."""
    for token in _TOKEN.findall(_DIGEST.sub("", text)):
        kinds = ["d" if c.isdigit() else "u" if c.isupper() else "l" for c in token if c.isalnum()]
        turns = sum(a != b for a, b in itertools.pairwise(kinds))
        if len(set(kinds)) > 1 and "d" in kinds and 4 * turns >= len(kinds):
            yield token


# --- the forms in which it can show up ------------------------------------------------------------------------------


def _plain_forms(text: str) -> Iterator[str]:
    """As it is, on one line, and as Go, JSON, YAML and URLs write it."""
    for one in {text, " ".join(text.split()), "".join(text.splitlines())}:
        yield one
        quoted = json.dumps(one, ensure_ascii=False)[1:-1]
        yield quoted
        yield json.dumps(quoted, ensure_ascii=False)[1:-1]  # quoted words that were quoted again
        yield json.dumps(one)[1:-1]
        yield quoted.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
        yield one.replace("'", "''")
        yield quote(one, safe="")
        yield quote(one)
        yield quote_plus(one)


def _encoded_forms(text: str) -> Iterator[str]:
    """In base64, also as a part of what was encoded as a whole; line breaks aside."""
    raw = text.encode()
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        whole = encode(raw).decode().rstrip("=")
        yield whole
        for before in range(3):  # characters that only the text decides, wherever in a whole it begins
            inner = encode(b"\0" * before + raw).decode().rstrip("=")
            inner = inner[(0, 2, 3)[before] : (before + len(raw)) * 8 // 6]
            if len(inner) >= WORD:
                yield inner


def _edged(form: str) -> str:
    """A short one counts as a whole word only."""
    if len(form) >= WORD:
        return re.escape(form)
    return (r"(?<!\w)" if form[0].isalnum() else "") + re.escape(form) + (r"(?!\w)" if form[-1].isalnum() else "")
