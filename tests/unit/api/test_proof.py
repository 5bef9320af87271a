"""Who asks and who tells prove that they share a token; nothing else is worth anything."""

from __future__ import annotations

import pytest

from moorage.api import proof

TOKEN, NOW = "t" * 43, 1.8e9


def test_a_question_and_its_answer() -> None:
    """Neither has the token in it, and each is worth something for that pod and that nonce alone."""
    header = proof.question(TOKEN, "demo-0", NOW, "a1")
    told = proof.answer(TOKEN, "demo-0", "a1", b"{}")

    assert TOKEN not in header + told
    assert "a1" == proof.asked(TOKEN, "demo-0", header, NOW + proof.SKEW)
    proof.check(TOKEN, "demo-0", "a1", b"{}", told)
    for pod, nonce, body in (("demo-1", "a1", b"{}"), ("demo-0", "a2", b"{}"), ("demo-0", "a1", b"{ }")):
        with pytest.raises(proof.ProofError, match="another token"):
            proof.check(TOKEN, pod, nonce, body, told)
    with pytest.raises(proof.ProofError, match="has no proof"):
        proof.check(TOKEN, "demo-0", "a1", b"{}", "")


@pytest.mark.parametrize("header", ["x", "1..2", "-1.a.b", "9" * 16 + ".a.b", "1.a b.c", "\N{SUPERSCRIPT TWO}.a.b"])
def test_what_is_no_proof(header: str) -> None:
    """Whoever has written it."""
    with pytest.raises(proof.ProofError, match="can't be read"):
        proof.asked(TOKEN, "demo-0", header, NOW)


@pytest.mark.parametrize("at", [NOW - proof.SKEW - 1, NOW + proof.SKEW + 1])
def test_a_question_of_another_time_is_refused(at: float) -> None:
    """Nobody asks with one that was overheard, much later; nor with one that a wrong clock has made."""
    header = proof.question(TOKEN, "demo-0", at, "a1")
    with pytest.raises(proof.ProofError, match="by the clock of this node, more than 300 s"):
        proof.asked(TOKEN, "demo-0", header, NOW)


@pytest.mark.parametrize(
    ("token", "sound"),
    [
        ("t" * 32, True),
        ("t" * 31, False),
        ("t" * 32 + "\n", False),
        ("t" * 32 + " t", False),
        ("\N{LATIN SMALL LETTER E WITH ACUTE}" * 32, False),
    ],
)
def test_what_is_a_token(token: str, sound: bool) -> None:
    """Long, and of plain characters."""
    assert sound == proof.sound(token)
