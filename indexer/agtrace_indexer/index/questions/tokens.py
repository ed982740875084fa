"""Tokens by kind, as in events, turns and sessions."""

from __future__ import annotations

from typing import NamedTuple


class TokenCounts(NamedTuple):
    """Tokens by kind; None if no log has them. Reasoning is a part of the output, the others add up to the total."""

    input_tokens: int | None
    """Uncached input."""
    cache_creation_5m_tokens: int | None
    cache_creation_1h_tokens: int | None
    cache_read_tokens: int | None
    output_tokens: int | None
    reasoning_tokens: int | None


TOKEN_COLUMNS = ", ".join(TokenCounts._fields)
"""The columns of `TokenCounts`, as SQL."""
