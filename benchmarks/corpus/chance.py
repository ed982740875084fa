"""Seeded randomness: identifiers, fake secrets, and a clock that only goes forward."""

from __future__ import annotations

import base64
import string
import time
from collections.abc import Callable, Sequence
from random import Random
from typing import TypeVar

T = TypeVar("T")

_LETTERS = string.ascii_letters + string.digits


def pick(rng: Random, items: Sequence[T]) -> T:
    """Return one of the items, all equally likely; quicker than `Random.choice`."""
    return items[int(rng.random() * len(items))]


def pick_early(rng: Random, items: Sequence[T]) -> T:
    """Return one of the items, the first ones much more often, as things in use are used again."""
    return items[int(rng.random() ** 3 * len(items))]


def hexadecimal(rng: Random, digits: int) -> str:
    """Return a hash of this many digits."""
    return f"{rng.getrandbits(4 * digits):0{digits}x}"


def uuid4(rng: Random) -> str:
    """Return a random UUID."""
    h = f"{rng.getrandbits(128):032x}"
    return f"{h[:8]}-{h[8:12]}-4{h[13:16]}-a{h[17:20]}-{h[20:]}"


def uuid7(rng: Random, milliseconds: int) -> str:
    """Return a UUID that begins with its time, like those of Codex's threads."""
    h = f"{milliseconds:012x}{rng.getrandbits(80):020x}"
    return f"{h[:8]}-{h[8:12]}-7{h[13:16]}-b{h[17:20]}-{h[20:]}"


def binary(rng: Random, size: int) -> str:
    """Return this many random bytes in base64."""
    return base64.b64encode(rng.randbytes(size)).decode()


def _letters(rng: Random, size: int) -> str:
    return "".join(rng.choices(_LETTERS, k=size))


# There is no secret here as a literal: what a scanner would find is put together when needed.
_SECRETS: list[Callable[[Random], str]] = [
    lambda rng: "GITHUB_TOKEN=" + "gh" + "p_" + _letters(rng, 36),
    lambda rng: "AWS_ACCESS_KEY_ID=" + "AK" + "IA" + "".join(rng.choices(string.ascii_uppercase + "234567", k=16)),
    lambda rng: "DATABASE_URL=postgres" + f"://app:{_letters(rng, 14)}" + f"@db-{rng.randint(1, 9)}.internal:5432/app",
    lambda rng: "Authorization: " + "Bea" + "rer " + _letters(rng, 40),
    lambda rng: "SLACK_TOKEN=" + "xo" + f"xb-{rng.getrandbits(36)}-{rng.getrandbits(36)}-" + _letters(rng, 24),
]


def secret(rng: Random) -> str:
    """Return a line with a made-up secret."""
    return pick(rng, _SECRETS)(rng)


class Clock:
    """The time in a session, in milliseconds since 1970 UTC."""

    def __init__(self, now: int) -> None:
        self.now = now
        self._second = -1
        self._prefix = ""

    def pass_about(self, rng: Random, milliseconds: int) -> None:
        """Advance by a time that is exponentially distributed with this mean."""
        self.now += 1 + int(rng.expovariate(1.0) * milliseconds)

    def stamp(self) -> str:
        """Return the current time as logs write it: `2026-05-04T08:00:00.000Z`."""
        second, rest = divmod(self.now, 1000)
        if second != self._second:
            self._second = second
            self._prefix = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
        return f"{self._prefix}.{rest:03d}Z"
