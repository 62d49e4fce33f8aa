"""Signatures and docstrings of functions whose options are a group of ``_parameters``."""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, ParamSpec, TypeVar, get_args, get_origin

from bloomjoin._parameters import Resources

_P = ParamSpec("_P")
_T = TypeVar("_T")

# What other libraries call a parameter, and what to write here.
_ELSEWHERE = {
    "type": "how",
    "by": "on",
    "left": "logs",
    "log": "logs",
    "right": "ids",
    "output": "out",
    "limit": "head(n) of the answer",
    "filters": "where",
    "left_on": "on={'log_column': 'id_column'}",
    "right_on": "on={'log_column': 'id_column'}",
    "log_on": "on={'log_column': 'id_column'}",
    "id_on": "on={'log_column': 'id_column'}",
    "suffixes": "suffix",
}


def verb(options: Any) -> Callable[[Callable[_P, _T]], Callable[_P, _T]]:
    """Show the options of a function, a TypedDict, in its signature and docstring.

    A name that is not among them is a TypeError that names the right one. An
    interrupt comes without the frames of the package.
    """

    def decorate(function: Callable[_P, _T]) -> Callable[_P, _T]:
        own = inspect.signature(function)
        parameters = [p for p in own.parameters.values() if p.kind is not p.VAR_KEYWORD]
        kinds = options.__annotations__
        for name in sorted(kinds, key=lambda name: name in Resources.__annotations__):  # last
            kind = kinds[name]
            default = False if get_args(kind)[0] is bool else None
            parameters.append(
                inspect.Parameter(
                    name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind
                )
            )
        lines = [f"    {p.name}: {said}." for p in parameters if (said := _meaning(p.annotation))]
        signature = own.replace(
            parameters=[p.replace(annotation=_bare(p.annotation)) for p in parameters]
        )

        @functools.wraps(function)
        def call(*args: _P.args, **kwargs: _P.kwargs) -> _T:
            _bind(function.__name__, signature, args, kwargs)
            try:
                return function(*args, **kwargs)
            except KeyboardInterrupt as interrupt:
                raise interrupt.with_traceback(None) from None

        call.__signature__ = signature  # type: ignore[attr-defined]
        call.__annotations__ = {p.name: p.annotation for p in signature.parameters.values()}
        call.__annotations__["return"] = own.return_annotation
        call.__doc__ = "\n".join([inspect.cleandoc(function.__doc__ or ""), "", "Args:", *lines])
        return call

    return decorate


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
            return function(**_bind(function.__name__, signature, args, kwargs))

        returns = inspect.signature(function).return_annotation
        call.__signature__ = signature.replace(  # type: ignore[attr-defined]
            return_annotation=returns
        )
        return call

    return decorate


def uninterrupted(method: Callable[_P, _T]) -> Callable[_P, _T]:
    """Let an interrupt of a method come without the frames of the package and of pyarrow."""

    @functools.wraps(method)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        try:
            return method(*args, **kwargs)
        except KeyboardInterrupt as interrupt:
            raise interrupt.with_traceback(None) from None

    return call


def _bind(
    name: str, signature: inspect.Signature, args: Iterable[Any], kwargs: Mapping[str, Any]
) -> dict[str, Any]:
    """Return arguments by name. Raises TypeError if they do not fit."""
    unknown = [given for given in kwargs if given not in signature.parameters]
    if unknown:
        raise TypeError(f"{name}() has no parameter {unknown[0]!r}{_hint(unknown[0], signature)}")
    try:
        return signature.bind(*args, **kwargs).arguments
    except TypeError as wrong:
        raise TypeError(f"{name}(): {wrong}") from None


def _hint(given: str, signature: inspect.Signature) -> str:
    known = list(signature.parameters)
    meant = _ELSEWHERE.get(given, "")
    if meant.partition("=")[0] not in known and "(" not in meant:
        meant = "on" if given == "key" and "on" in known else ""
        meant = meant or ("key" if given == "on" and "key" in known else "")
    near = [meant] if meant else difflib.get_close_matches(given, known, n=1)
    return f" (did you mean {near[0]}?)" if near else ""


def _meaning(kind: Any) -> str:
    return str(get_args(kind)[1]) if get_origin(kind) is Annotated else ""


def _bare(kind: Any) -> Any:
    return get_args(kind)[0] if get_origin(kind) is Annotated else kind
