"""Object stores: settings under the names of several libraries, and lent credentials."""

from __future__ import annotations

import datetime as dt
import os
import urllib.parse
from collections.abc import Iterator
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.fs
import pytest
import s3gateway
from flights import LOGS, ON, TEXAS
from pyiceberg.catalog.sql import SqlCatalog

import bloomjoin
from bloomjoin import _process
from bloomjoin._stores import access

BUCKET = "s3://lake/logs/"


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    if not os.environ.get("BLOOMJOIN_S3GW"):
        pytest.skip("BLOOMJOIN_S3GW names no server")
    with s3gateway.gateway() as server:
        server.copy_in(LOGS, "lake/logs")
        yield server.endpoint


@pytest.fixture(autouse=True)
def no_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of the environment may help."""
    for name in list(os.environ):
        if name.startswith("AWS_"):
            monkeypatch.delenv(name)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, os.devnull)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


def options(family: str, endpoint: str) -> dict[str, Any]:
    key, secret, region = s3gateway.ACCESS, s3gateway.SECRET, s3gateway.REGION
    return {
        "fsspec": {
            "key": key,
            "secret": secret,
            "client_kwargs": {"endpoint_url": endpoint, "region_name": region},
        },
        "object_store": {
            "AWS_ACCESS_KEY_ID": key,
            "aws_secret_access_key": secret,
            "aws_endpoint_url": endpoint,
            "aws_region": region,
            "aws_allow_http": "true",
        },
        "own": {
            "access_key_id": key,
            "secret_access_key": secret,
            "endpoint": endpoint,
            "region": region,
        },
    }[family]


@pytest.mark.parametrize("family", ["fsspec", "object_store", "own"])
def test_a_log_in_a_bucket(family: str, endpoint: str) -> None:
    given = options(family, endpoint)
    rows = bloomjoin.join(BUCKET, TEXAS, ON, storage_options=given).read_all()
    assert rows.num_rows == 5867


def test_outputs_and_filters_in_a_bucket(endpoint: str) -> None:
    given = options("own", endpoint)
    built = bloomjoin.build(TEXAS, "iata")
    built.save("s3://lake/texas.bjf", storage_options=given)
    assert bloomjoin.Filter.load("s3://lake/texas.bjf", storage_options=given) == built
    with pytest.raises(bloomjoin.DataError):
        bloomjoin.build(TEXAS, "iata", fpr=0.1, out="s3://lake/texas.bjf", storage_options=given)
    report = bloomjoin.scan_to(
        "s3://lake/texas.bjf", BUCKET, "origin", out="s3://lake/out/", storage_options=given
    )
    found = bloomjoin.inspect("s3://lake/out/", check=True, storage_options=given)
    assert found.directories[0]["rows"] == report.rows_out == 5867


def test_lent_credentials(endpoint: str) -> None:
    asked: list[str] = []

    def credentials(url: str) -> dict[str, Any]:
        asked.append(url)
        return {
            "access_key_id": s3gateway.ACCESS,
            "secret_access_key": s3gateway.SECRET,
            "expires_at": dt.datetime.now(dt.timezone.utc) + dt.timedelta(hours=1),
        }

    given = {"endpoint": endpoint, "region": s3gateway.REGION}
    rows = bloomjoin.join(
        BUCKET, TEXAS, ON, storage_options=given, credentials=credentials
    ).read_all()
    assert (rows.num_rows, asked) == (5867, ["s3://lake"])
    bloomjoin.build(
        TEXAS, "iata", out="s3://lake/lent.bjf", storage_options=given, credentials=credentials
    )


def test_credentials_that_fail(endpoint: str) -> None:
    def credentials() -> dict[str, str]:
        raise LookupError("no more tokens")

    given = {"endpoint": endpoint, "region": s3gateway.REGION}
    with pytest.raises(bloomjoin.Error, match="credentials") as raised:
        bloomjoin.join(BUCKET, TEXAS, ON, storage_options=given, credentials=credentials)
    assert isinstance(raised.value.__cause__, LookupError)


def test_wrong_credentials(endpoint: str) -> None:
    given = {**options("own", endpoint), "secret_access_key": "not-this-one", "retries": 0}
    with pytest.raises(bloomjoin.DataError) as raised:
        bloomjoin.join(BUCKET, TEXAS, ON, storage_options=given)
    assert "not-this-one" not in str(raised.value) + repr(raised.value.command)


def test_secrets_are_not_on_the_command_line() -> None:
    given = {"key": "k1", "secret": "s1", "account_key": "a1", "sas_token": "t1", "anon": True}
    with access(given, None) as stores:
        assert not {"k1", "s1", "a1", "t1"} & set("=".join(stores.flags).split("="))
        assert {"k1", "s1", "a1", "t1"} <= set(stores.env.values())
        assert stores.flags == ("--store-option=anonymous=true",)


def test_names_that_are_unknown() -> None:
    with pytest.raises(bloomjoin.UsageError, match="did you mean 'endpoint_url'"):
        bloomjoin.join(BUCKET, TEXAS, ON, storage_options={"endpiont_url": "x"})
    with pytest.raises(bloomjoin.UsageError, match="known are"):
        bloomjoin.join(BUCKET, TEXAS, ON, storage_options={"zzzzzz": "x"})


def test_only_who_shows_the_token_gets_credentials() -> None:
    import urllib.error
    import urllib.request

    with access(None, lambda: {"token": "t"}) as stores:
        assert stores.lender is not None
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(stores.lender.url)
        asked = urllib.request.Request(
            stores.lender.url, headers={"Authorization": f"Bearer {stores.lender.token}"}
        )
        with urllib.request.urlopen(asked) as answer:
            assert answer.read() == b'{"token": "t"}'


def test_a_server_that_refuses_is_worth_another_attempt() -> None:
    given = {"endpoint": "http://127.0.0.1:9", "key": "a", "secret": "b", "retries": 0}
    with pytest.raises(bloomjoin.RetryableError) as raised:
        bloomjoin.scan(bloomjoin.build(pa.array([1])), BUCKET, "k", storage_options=given)
    assert raised.value.exit_code == 75
    assert _process.binary() not in raised.value.command


@pytest.mark.parametrize("place", ["tables", "tab les/100% ü"])
def test_tables_in_a_bucket(place: str, endpoint: str, tmp_path: Any) -> None:
    """Their settings stay in the objects: others are given, as for paths."""
    log = pa.table({"id": range(20), "url": [f"/{i}" for i in range(20)]})
    given = {"s3.endpoint": endpoint, "s3.region": s3gateway.REGION}
    given |= {"s3.access-key-id": s3gateway.ACCESS, "s3.secret-access-key": s3gateway.SECRET}
    catalog = SqlCatalog("c", uri="sqlite:///:memory:", warehouse=f"s3://lake/{place}/i", **given)
    catalog.create_namespace("db")
    iceberg = catalog.create_table("db.t", log.schema)
    iceberg.append(log)
    iceberg.delete("id < 10")
    deltalake.write_deltalake(str(tmp_path), log)
    deltalake.DeltaTable(str(tmp_path)).delete("id < 10")
    files = s3gateway.Gateway(endpoint).filesystem()
    pa.fs.copy_files(str(tmp_path), f"lake/{place}/d", destination_filesystem=files)
    uri = "s3://lake/" + urllib.parse.quote(place) + "/d"
    own = options("object_store", endpoint)
    delta = deltalake.DeltaTable(uri, storage_options=own | {"aws_conditional_put": "etag"})
    for table in (iceberg, delta):
        with pytest.raises(bloomjoin.Error, match="credentials"):
            bloomjoin.join(table, [5, 15], "id", storage_options={"endpoint": endpoint})
        rows = bloomjoin.join(table, [5, 15], "id", storage_options=own).read_all()
        assert rows.to_pylist() == [{"id": 15, "url": "/15"}]
