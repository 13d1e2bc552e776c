"""Extension of griffe, which reads docstrings: a paragraph with aligned columns becomes a block of code.

Otherwise Markdown would join the lines of such a paragraph, `name  meaning`.
"""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

ALIGNED = re.compile(r"^\S+ {2,}\S", re.MULTILINE)


class Aligned(Extension):
    def on_instance(self, *, obj: Object, **_others: Any) -> None:
        if obj.docstring is not None:
            parts = obj.docstring.value.split("\n\n")
            obj.docstring.value = "\n\n".join(
                f"```text\n{each}\n```" if ALIGNED.search(each) else each for each in parts
            )
