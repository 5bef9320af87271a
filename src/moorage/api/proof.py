"""How two who share a token speak to each other, so that it never travels: who asks proves it, and who tells. Pure.

A question bears the time, a nonce and a proof of both for the one pod that is asked; the answer a proof of that nonce
and of all that is told. So nobody without the token is told anything, nobody without it is believed, and neither a
question nor an answer is worth anything elsewhere, or much later. What is told can be read on the way, as it is no TLS.
"""

from __future__ import annotations

import hashlib
import hmac

ASKED, TOLD = "X-Moorage-Asks", "X-Moorage-Tells"
"""Headers of a question and of an answer."""

SKEW = 300.0
"""Seconds by which the clocks of who asks and who is asked may differ."""

LEAST = 32
"""Characters of a token."""


class ProofError(Exception):
    """A question or an answer does not prove what it must; the message says which part."""


def sound(token: str) -> bool:
    """Whether that is a token by which anybody is believed."""
    return len(token) >= LEAST and token.isascii() and token.isprintable() and " " not in token


def question(token: str, pod: str, now: float, nonce: str) -> str:
    """The header of a question to that pod. `nonce` is another one each time, in hexadecimal digits."""
    at = str(int(now))
    return f"{at}.{nonce}.{_proof(token, 'ask', pod, at, nonce)}"


def asked(token: str, pod: str, header: str, now: float) -> str:
    """The nonce of a question that `pod` was asked. Raises ProofError."""
    if not header:
        raise ProofError("a question must bear a proof of the installation's token, and this one has none")
    at, _, rest = header.partition(".")
    nonce, _, given = rest.partition(".")
    if not (at.isascii() and at.isdecimal() and len(at) < 16 and 0 < len(nonce) <= 64 and nonce.isalnum()):
        raise ProofError("the proof of the question can't be read")
    if not _same(given, _proof(token, "ask", pod, at, nonce)):
        raise ProofError("the question is proved by another token than that of this installation")
    if abs(now - int(at)) > SKEW:
        raise ProofError(f"the question is {now - int(at):+.0f} s old by the clock of this node, more than {SKEW:g} s")
    return nonce


def answer(token: str, pod: str, nonce: str, body: bytes) -> str:
    """The header of an answer by that pod to the question with that nonce."""
    return _proof(token, "tell", pod, nonce, hashlib.sha256(body).hexdigest())


def check(token: str, pod: str, nonce: str, body: bytes, header: str) -> None:
    """That pod has told this. Raises ProofError."""
    if not header:
        raise ProofError("its answer has no proof of the installation's token, as one by somebody else has none")
    if not _same(header, answer(token, pod, nonce, body)):
        raise ProofError("its answer is proved by another token than that of this installation")


def _proof(token: str, *parts: str) -> str:
    return hmac.new(token.encode(), "\n".join(parts).encode(), hashlib.sha256).hexdigest()


def _same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode(errors="replace"), other.encode())
