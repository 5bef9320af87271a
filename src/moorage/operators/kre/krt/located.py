"""A YAML text whose every part knows its line and column. Pure.

The text is read as Kubernetes and Helm would, within the limits of `helm_yaml`, which also refuses a key that is given
twice; only then its nodes are composed once more for their places, which costs no more than those limits.
"""

from __future__ import annotations

from typing import Any

import yaml

from moorage.helm.parsing import helm_yaml

from . import problems

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Located:
    """The value of a text, and where in the text each part of it stands."""

    def __init__(self, text: str) -> None:
        """Raises helm_yaml.DocumentError, with line and column, for a text that is not one YAML document."""
        self.value = helm_yaml.load(text, strict=True)
        try:
            self._root: yaml.Node | None = next(yaml.compose_all(text, Loader=_Loader), None)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark
            where = (mark.line + 1, mark.column + 1) if mark else (0, 0)
            raise helm_yaml.DocumentError("an anchor of this name is given before", *where) from None

    def of(self, path: problems.Path, *, key: bool = False) -> tuple[int, int]:
        """(line, column) of the value at `path`, or of its key; of the nearest part around it where there is none."""
        node, mark = self._root, None
        for part in path:
            found = _below(node, part)
            if found is None:
                key = False
                break
            named, node = found
            mark = named.start_mark
        if node is None:
            return 1, 1
        place = mark if key and mark else node.start_mark
        return place.line + 1, place.column + 1


def _below(node: yaml.Node | None, part: str | int) -> tuple[yaml.Node, yaml.Node] | None:
    """(what names it, the node itself) of a part of a mapping or a sequence."""
    if isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
        return node.value[part], node.value[part]
    if not isinstance(node, yaml.MappingNode):
        return None
    for key, value in node.value:
        if isinstance(key, yaml.ScalarNode) and key.value == part:
            return key, value
    for key, value in node.value:  # a merge key brings what does not stand here
        if isinstance(key, yaml.ScalarNode) and key.value == "<<":
            for layer in value.value if isinstance(value, yaml.SequenceNode) else [value]:
                if found := _below(layer, part):
                    return found
    return None
