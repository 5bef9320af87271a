"""The password rule, and durations as the spec has them."""

from __future__ import annotations

import pytest

from moorage.operators.xsld.cache import types

PASSWORDS = {
    "sound": ("Secret-1234", True),
    "ten characters": ("Abcdefg1-x", True),
    "nine characters": ("Abcdef1-x", False),
    "no digit": ("Abcdefghi-x", False),
    "no upper-case letter": ("abcdefg1-xx", False),
    "no special": ("Abcdefg1xx", False),
    "a double quote": ('Abcdefg1-x"', False),
    "a quote as its only special": ("Abcdefg1x'", True),
    "digits of other scripts count for nothing": ("Abcdefg٣-xx", False),
    "upper-case letters of other scripts neither": ("Äbcdefg1-xx", False),
    "a special of none of the list": ("Abcdefg1§xx", False),
    "a space is no special": ("Abcdefg1 xx", False),
    "empty": ("", False),
    "a line break in it": ("Secret-12\n34", False),
    "a tab": ("Secret-12\t34", False),
    "a character that deletes": ("Secret-1234\x7f", False),
}


@pytest.mark.parametrize(("text", "sound"), PASSWORDS.values(), ids=PASSWORDS)
def test_the_vendors_password_rule(text: str, sound: bool) -> None:
    assert sound == (types.password_fault(text) == "")


@pytest.mark.parametrize("special", "~!@#$%^&*()_-+=:;'[]{}|<>,.?/")
def test_each_special_of_the_rule_will_do(special: str) -> None:
    assert "" == types.password_fault(f"Abcdefgh1{special}")


def test_a_fault_tells_the_rule_and_not_the_password() -> None:
    fault = types.password_fault("hunter2")

    assert types.PASSWORD_RULE in fault
    assert "hunter2" not in fault


@pytest.mark.parametrize("end", ["\n", "\r\n", "\n\n"])
def test_a_line_break_at_the_end_is_told_with_what_to_do(end: str) -> None:
    """A Secret that was made with echo: the shell of whoever logs in takes the line break off."""
    fault = types.password_fault(f"Secret-1234{end}")

    assert "ends with a line break" in fault
    assert "printf" in fault


@pytest.mark.parametrize(
    ("written", "primary"),
    [
        ("", "c-0"),
        ("c-2", "c-2"),
        ("-1", "c-0"),
        ("c", "c-0"),
        ("c-00", "c-0"),
        ("other-1", "c-0"),
        ("c-0/x", "c-0"),
    ],
)
def test_whom_the_status_calls_primary_is_a_pod_of_the_cache(written: str, primary: str) -> None:
    assert primary == types.XsldCacheStatus(primary=written).primary_of("c")
