"""A value of an object that is worked out when it is first asked for, and kept."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")


class kept(Generic[T]):  # written as a decorator, like property
    """As functools.cached_property, without the lock that it takes up to Python 3.11: most values here are worked out
    in less time. The object may be frozen; it needs a `__dict__`.
    """

    def __init__(self, make: Callable[[Any], T]) -> None:
        self._make, self.__doc__ = make, make.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, made: None, owner: type) -> "kept[T]": ...

    @overload
    def __get__(self, made: object, owner: type) -> T: ...

    def __get__(self, made: object | None, owner: type) -> "T | kept[T]":
        if made is None:
            return self
        value = made.__dict__[self._name] = self._make(made)
        return value
