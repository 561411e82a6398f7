"""Configured expressions: RE2 only, so that none can take more than linear time."""

from __future__ import annotations

import re2


def expression_problem(pattern: str) -> str | None:
    """RE2's complaint about an expression; None when it compiles."""
    options = re2.Options()
    options.log_errors = False
    try:
        re2.compile(pattern, options)
    except re2.error as error:
        reason = error.args[0] if error.args else "unknown reason"
        text = reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
        return f"no valid RE2 expression: {text}"
    return None
