"""Functions that take the parameters of a verb."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import ParamSpec, TypeVar

_P = ParamSpec("_P")
_T = TypeVar("_T")


def takes_parameters_of(
    verb: Callable[_P, object],
) -> Callable[[Callable[..., _T]], Callable[_P, _T]]:
    """Give the decorated function the signature of ``verb``.

    Type checkers, editors and ``help()`` see the verb's parameters. Arguments
    that do not fit are a TypeError at the call, even if the verb runs later or
    in another process. The function receives its arguments by keyword.
    """
    signature = inspect.signature(verb)

    def decorate(function: Callable[..., _T]) -> Callable[_P, _T]:
        @functools.wraps(function)
        def call(*args: _P.args, **kwargs: _P.kwargs) -> _T:
            return function(**signature.bind(*args, **kwargs).arguments)

        returns = inspect.signature(function).return_annotation
        call.__signature__ = signature.replace(  # type: ignore[attr-defined]
            return_annotation=returns
        )
        return call

    return decorate
