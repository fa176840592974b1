"""For the reference: one entry of a docstring that describes several names at once becomes an entry for each."""

from __future__ import annotations

import re
from typing import Any

import griffe

SHARED = re.compile(r"^( +)(\w+(?:, \w+)+)(: (?:.*)(?:\n\1 +\S.*)*)", re.MULTILINE)


def apart(text: str) -> str:
    """`a, b: what they are` as two lines."""
    return SHARED.sub(lambda found: "\n".join(found[1] + name + found[3] for name in found[2].split(", ")), text)


class SharedDescriptions(griffe.Extension):
    """Looks at every docstring that is collected."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Called once for each object."""
        if obj.docstring is not None:
            sections = re.split(r"(?m)^( *(?:Args|Attributes|Returns|Raises):)$", obj.docstring.value)
            # Only what stands below a heading lists names.
            obj.docstring.value = sections[0] + "".join(
                heading + apart(body) for heading, body in zip(sections[1::2], sections[2::2], strict=True)
            )
