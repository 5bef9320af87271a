"""What a specification may say, and the words with which a wrong one is refused."""

from pathlib import Path

import pytest
from tb.errors import TestbedError
from tb.images import spec

WHOLE = """
name = "example.org/app:1"
base = ["python3-minimal", "ca-certificates"]
prune = ["/usr/share/doc"]
compile = ["/app"]
entrypoint = ["/usr/bin/python3", "-m", "app"]
cmd = ["serve"]
user = "65532:65532"
workdir = "/app"

[env]
PYTHONPATH = "/app"

[[requirements]]
file = "requirements.txt"
target = "/app"

[[files]]
source = "${TOOLS}/helm"
target = "/usr/bin/helm"
mode = "0755"
owner = "1:2"

[[files]]
text = "root:x:0:0::/:/none"
target = "/etc/passwd"

[[folders]]
path = "/data"
mode = "0777"
"""


def read(tmp_path: Path, text: str) -> spec.Spec:
    path = tmp_path / "spec.toml"
    path.write_text(text)
    return spec.read(path, {"TOOLS": "/opt/tools"})


def test_a_whole_specification(tmp_path: Path) -> None:
    made = read(tmp_path, WHOLE)
    assert made.packages == ("ca-certificates", "python3-minimal")
    assert made.suite == "bookworm"
    assert made.requirements == (spec.Requirements(tmp_path / "requirements.txt", "app"),)
    helm, passwd = made.files
    assert (helm.source, helm.target, helm.mode, helm.owner) == (
        Path("/opt/tools/helm"),
        "usr/bin/helm",
        0o755,
        spec.Owner(1, 2),
    )
    assert passwd.text == "root:x:0:0::/:/none"
    assert made.folders == (spec.Folder("data", 0o777, spec.Owner()),)
    assert made.env == (("PYTHONPATH", "/app"),)


def test_without_a_base_an_image_starts_from_nothing(tmp_path: Path) -> None:
    assert read(tmp_path, 'name = "a:1"').packages == ()
    assert read(tmp_path, 'name = "a:1"\nbase = "scratch"').packages == ()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('base = "scratch"', "the key `name` is missing"),
        ('name = "a:1"\nentrypont = []', "unknown key: entrypont"),
        ('name = "a:1"\nbase = "debian"', "must be a list of Debian packages"),
        ('name = "a:1"\ncmd = [1]', "`cmd` must be a list of strings"),
        ('name = "a:1"\n[[files]]\ntarget = "/x"', "either `source` or `text`"),
        ('name = "a:1"\n[[files]]\ntext = ""\ntarget = "x"', "must be an absolute path"),
        ('name = "a:1"\n[[files]]\ntext = ""\ntarget = "/x"\nmode = "rw"', "must be octal digits"),
        ('name = "a:1"\n[[files]]\nsource = "${NONE}/x"\ntarget = "/x"', "variable NONE"),
        ('name = "a:1"\n[[folders]]\npath = "/x"\nowner = "me"', "must be two numbers"),
        ("name = ", "cannot read"),
    ],
)
def test_a_wrong_specification_is_refused(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(TestbedError, match=says):
        read(tmp_path, text)
