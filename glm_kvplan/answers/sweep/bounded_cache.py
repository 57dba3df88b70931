"""A bounded cache whose key says what the answer depends on, whatever else it takes to work it out."""

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

MOST_KEPT = 1024
T = TypeVar("T")


class Memo(Generic[T]):
    """At most `most` answers; a full cache starts over, which costs a walk over the points little."""

    __slots__ = ("_known", "_most")

    def __init__(self, most: int = MOST_KEPT) -> None:
        self._known: dict[Hashable, T] = {}
        self._most = most

    def __call__(self, key: Hashable, make: Callable[..., T], *arguments: object) -> T:
        """The answer of `key`: the one kept, or `make(*arguments)`."""
        known = self._known
        if key in known:
            return known[key]
        answer = make(*arguments)
        if len(known) >= self._most:
            known.clear()
        known[key] = answer
        return answer
