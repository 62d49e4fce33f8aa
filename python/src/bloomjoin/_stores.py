"""Access to object stores: settings by the names of other libraries, and lent credentials.

Secrets go to the command through its environment, never on its command line.
"""

from __future__ import annotations

import contextlib
import difflib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from bloomjoin._errors import UsageError
from bloomjoin._lender import Lender, lend

Credentials = Callable[..., Mapping[str, Any]]

# Settings that are flags of the command. The first names are its own (with - for _),
# the others those of fsspec and of object_store, which Polars and deltalake use.
_FLAGS = {
    "region": ("region", "aws_region", "aws_default_region", "region_name"),
    "endpoint": ("endpoint", "endpoint_url", "aws_endpoint_url", "aws_endpoint"),
    "path-style": ("path_style",),
    "profile": ("profile", "aws_profile"),
    "anonymous": ("anonymous", "anon", "aws_skip_signature", "skip_signature"),
    "requester-pays": ("requester_pays", "aws_request_payer", "request_payer"),
    "sse": ("sse", "aws_server_side_encryption"),
    "kms-key": ("kms_key", "aws_sse_kms_key_id"),
    "requests": ("requests",),
    "retries": ("retries", "max_retries"),
}

# Settings that are variables of the environment.
_VARIABLES = {
    "AWS_ACCESS_KEY_ID": ("key", "aws_access_key_id", "access_key_id"),
    "AWS_SECRET_ACCESS_KEY": ("secret", "aws_secret_access_key", "secret_access_key"),
    "AWS_SESSION_TOKEN": ("token", "aws_session_token", "aws_token", "session_token"),
    "GOOGLE_APPLICATION_CREDENTIALS": (
        "google_application_credentials",
        "google_service_account",
        "google_service_account_path",
        "service_account",
    ),
    "AZURE_STORAGE_ACCOUNT": (
        "account_name",
        "azure_storage_account",
        "azure_storage_account_name",
    ),
    "AZURE_STORAGE_KEY": (
        "account_key",
        "azure_storage_key",
        "azure_storage_account_key",
        "azure_storage_access_key",
    ),
    "AZURE_STORAGE_SAS_TOKEN": ("sas_token", "azure_storage_sas_token", "azure_storage_sas_key"),
    "AZURE_STORAGE_CONNECTION_STRING": (
        "connection_string",
        "azure_storage_connection_string",
    ),
    "AZURE_TENANT_ID": ("tenant_id", "azure_tenant_id", "azure_storage_tenant_id"),
    "AZURE_CLIENT_ID": ("client_id", "azure_client_id", "azure_storage_client_id"),
    "AZURE_CLIENT_SECRET": (
        "client_secret",
        "azure_client_secret",
        "azure_storage_client_secret",
    ),
}

_FLAG_OF = {name: flag for flag, names in _FLAGS.items() for name in names}
_VARIABLE_OF = {name: variable for variable, names in _VARIABLES.items() for name in names}

# Buckets in the host's name are the opposite of path-style.
_VIRTUAL_HOSTS = ("aws_virtual_hosted_style_request", "virtual_hosted_style_request")

# The address says already whether it is http.
_NEEDLESS = ("aws_allow_http", "allow_http", "use_ssl")


@dataclass(frozen=True)
class Access:
    """The flags and the environment with which the command has access to stores."""

    flags: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    lender: Lender | None = None


@contextlib.contextmanager
def access(
    storage_options: Mapping[str, Any] | None, credentials: Credentials | None
) -> Iterator[Access]:
    """Give access to stores. The command can ask for credentials while the block runs."""
    settings, env = _settings(storage_options or {})
    with contextlib.ExitStack() as stack:
        lender = None
        if credentials is not None:
            lender = stack.enter_context(lend(credentials))
            settings["credentials-url"] = lender.url
            env["BLOOMJOIN_CREDENTIALS_TOKEN"] = lender.token
        flags = tuple(f"--store-option={name}={value}" for name, value in settings.items())
        yield Access(flags, env, lender)


def _settings(given: Mapping[str, Any]) -> tuple[dict[str, str], dict[str, str]]:
    settings: dict[str, str] = {}
    env: dict[str, str] = {}
    for name, value in _flat(given):
        plain = name.lower().replace("-", "_")
        if value is None or plain in _NEEDLESS:
            continue
        if plain in _FLAG_OF:
            settings[_FLAG_OF[plain]] = _word(value)
        elif plain in _VARIABLE_OF:
            env[_VARIABLE_OF[plain]] = str(value)
        elif plain in _VIRTUAL_HOSTS:
            settings["path-style"] = _word(not _true(value))
        else:
            raise UsageError(_unknown(name, plain))
    if "AWS_ACCESS_KEY_ID" in env:
        # A token of other credentials, from the environment, does not belong to these.
        env.setdefault("AWS_SESSION_TOKEN", "")
    return settings, env


def _flat(given: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the settings, also those that s3fs passes on to its client."""
    for name, value in given.items():
        if name == "client_kwargs" and isinstance(value, Mapping):
            yield from _flat(value)
        else:
            yield str(name), value


def _word(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _true(value: Any) -> bool:
    return str(value).lower() in ("true", "1", "yes")


def _unknown(name: str, plain: str) -> str:
    known = [*_FLAG_OF, *_VARIABLE_OF, *_VIRTUAL_HOSTS]
    near = difflib.get_close_matches(plain, known, n=1)
    hint = f"did you mean {near[0]!r}?" if near else "known are: " + ", ".join(sorted(known))
    return f"storage_options: unknown name {name!r} ({hint})"
