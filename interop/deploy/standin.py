#!/usr/bin/env python3
"""Stand-ins for kubectl, sbatch and aws, which run the jobs on this machine.

Called under one of these names. A job has run when the command returns: its tasks
run at the same time, and again as the job's limits and the exit codes say.
Environment: STATE is a directory for what is known of jobs, LOCAL the directory
that stands for s3://example-bucket/lake, for /data on a volume, and for LAKE.
"""

import concurrent.futures
import json
import os
import subprocess
import sys
from pathlib import Path

STATE, LOCAL = Path(os.environ["STATE"]), os.environ["LOCAL"]


def local(text):
    return text.replace("s3://example-bucket/lake", LOCAL)


def run_task(command, env, attempts, final, log):
    """Runs a command until it succeeds; returns its last exit code."""
    for _ in range(attempts):
        with open(log, "a", encoding="utf-8") as out:
            code = subprocess.run(command, env=os.environ | env, stdout=out, stderr=out).returncode
        if code == 0 or code in final:
            break
    return code


def run_tasks(command, envs, attempts, final, log):
    """Runs a task for each environment, and returns their exit codes."""
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        tasks = [pool.submit(run_task, command(env), env, attempts, final, log(i)) for i, env in enumerate(envs)]
        return [t.result() for t in tasks]


def kubectl(args):
    if args[0] == "--namespace":
        args = args[2:]
    match args:
        case ["delete", "job", "--selector", "app=bloomjoin", "--ignore-not-found"]:
            for f in STATE.glob("job-*"):
                f.unlink()
        case ["apply", "-k", directory, "--selector", selector]:
            apply(directory, selector.removeprefix("step="))
        case ["get", job, "-o", 'jsonpath={.status.conditions[?(@.status=="True")].type}']:
            print((STATE / job.replace("/", "-")).read_text())
        case ["logs", job, "--tail=1"]:
            for f in sorted(STATE.glob(f"log-{job.split('/')[1]}-*")):
                print(f.read_text().splitlines()[-1:])
        case _:
            sys.exit(f"kubectl: unexpected {args}")


def apply(directory, step):
    import yaml

    text = subprocess.run([os.environ["RENDER"], directory], check=True, capture_output=True, text=True).stdout
    chosen = [d for d in yaml.safe_load_all(text) if d["metadata"]["labels"]["step"] == step]
    if not chosen:
        sys.exit(f"kubectl: no object for {step}")
    for d in chosen:
        if d["kind"] == "ConfigMap":
            (STATE / "settings").write_text(json.dumps(d["data"]))
        if d["kind"] == "Job":
            codes = run_job(d["metadata"]["name"], d["spec"])
            ended = "Failed" if any(codes) else "SuccessCriteriaMet Complete"
            (STATE / f"job-{d['metadata']['name']}").write_text(ended)


def run_job(name, spec):
    container = spec["template"]["spec"]["containers"][0]
    settings = json.loads((STATE / "settings").read_text())
    lake = local(settings["LAKE"])
    for m in container["volumeMounts"]:
        if m["name"] == "lake":
            lake = lake.replace(m["mountPath"], LOCAL, 1)
    command = ["bloomjoin", *(a.replace("$(LAKE)", lake) for a in container["args"])]
    final = next(r["onExitCodes"]["values"] for r in spec["podFailurePolicy"]["rules"] if r["action"] == "FailJob")
    envs = [settings]
    if spec.get("completionMode") == "Indexed":
        envs = [settings | {"JOB_COMPLETION_INDEX": str(i)} for i in range(spec["completions"])]
    retries = spec.get("backoffLimitPerIndex", spec.get("backoffLimit"))
    return run_tasks(lambda _: command, envs, 1 + retries, final, lambda i: STATE / f"log-{name}-{i}")


def sbatch(args):
    options, flags = {}, {"--parsable", "--requeue"}
    while args[0].startswith("-"):
        name = args.pop(0)
        options[name] = "" if name in flags else args.pop(0)
    unknown = options.keys() - flags - {
        "--job-name", "--output", "--signal", "--cpus-per-task", "--mem", "--dependency", "--kill-on-invalid-dep", "--array",
    }  # fmt: skip
    if unknown or "--parsable" not in options:
        sys.exit(f"sbatch: unexpected {unknown or options}")
    number = 100 + len(list(STATE.glob("slurm-*")))
    print(number)
    record = STATE / f"slurm-{number}"
    if after := options.get("--dependency"):
        kind, before = after.split(":")
        if kind != "afterok" or options["--kill-on-invalid-dep"] != "yes":
            sys.exit(f"sbatch: unexpected {after}")
        if (STATE / f"slurm-{before}").read_text() != "COMPLETED":
            record.write_text("CANCELLED")
            return
    envs = [{}]
    if array := options.get("--array"):
        tasks = [t for part in array.split(",") for t in span(*part.split("-"))]
        facts = {"COUNT": len(tasks), "MIN": min(tasks), "MAX": max(tasks), "STEP": 1}
        common = {f"SLURM_ARRAY_TASK_{k}": str(v) for k, v in facts.items()}
        envs = [common | {"SLURM_ARRAY_TASK_ID": str(t)} for t in tasks]
    codes = run_tasks(lambda _: args, envs, 1, (), lambda i: STATE / f"log-slurm-{number}-{i}")
    record.write_text("FAILED" if any(codes) else "COMPLETED")


def span(first, last=None):
    return range(int(first), int(last or first) + 1)


def aws(args):
    if args[0] != "batch" or args[2] != "--cli-input-json" or not args[3].startswith("file://"):
        sys.exit(f"aws: unexpected {args}")
    request = json.loads(Path(args[3].removeprefix("file://")).read_text())
    if args[1] == "register-job-definition" and len(args) == 4:
        checked("RegisterJobDefinition", request)
        (STATE / f"definition-{request['jobDefinitionName']}").write_text(json.dumps(request))
        return
    rest = args[4:]
    if rest[0] == "--depends-on":
        request["dependsOn"] = [{"jobId": rest[1].removeprefix("jobId=")}]
        rest = rest[2:]
    if args[1] != "submit-job" or rest != ["--query", "jobId", "--output", "text"]:
        sys.exit(f"aws: unexpected {args}")
    checked("SubmitJob", request)
    number = f"job-{len(list(STATE.glob('batch-*')))}"
    print(number)
    record = STATE / f"batch-{number}"
    if any((STATE / f"batch-{d['jobId']}").read_text() != "SUCCEEDED" for d in request.get("dependsOn", [])):
        record.write_text("FAILED")
        return
    definition = json.loads((STATE / f"definition-{request['jobDefinition']}").read_text())
    retry = definition["retryStrategy"]
    final = [int(e["onExitCode"]) for e in retry["evaluateOnExit"] if e["action"] == "EXIT"]
    command = ["bloomjoin", *map(local, request["containerOverrides"]["command"])]
    envs = [{}]
    if size := request.get("arrayProperties", {}).get("size"):
        envs = [{"AWS_BATCH_JOB_ARRAY_INDEX": str(i), "AWS_BATCH_JOB_ARRAY_SIZE": str(size)} for i in range(size)]
    codes = run_tasks(lambda _: command, envs, retry["attempts"], final, lambda i: STATE / f"log-{number}-{i}")
    record.write_text("FAILED" if any(codes) else "SUCCEEDED")


def checked(operation, request):
    """Fails if a request does not fit the service's own description of its API."""
    import botocore.loaders
    import botocore.model
    import botocore.validate

    model = botocore.model.ServiceModel(botocore.loaders.Loader().load_service_model("batch", "service-2"))
    shape = model.operation_model(operation).input_shape
    report = botocore.validate.ParamValidator().validate(request, shape)
    errors = [report.generate_report()] if report.has_errors() else []
    errors += wrong_words(request, shape)  # which the validator does not look at
    if errors:
        sys.exit(f"aws: {operation}: {errors}")


def wrong_words(value, shape):
    """Yields strings that are not one of those that the API knows."""
    if shape.type_name == "structure":
        for name, v in value.items():
            yield from wrong_words(v, shape.members[name])
    elif shape.type_name == "list":
        for v in value:
            yield from wrong_words(v, shape.member)
    elif shape.type_name == "string" and shape.enum and value not in shape.enum:
        yield f"{value}: want one of {shape.enum}"


if __name__ == "__main__":
    {"kubectl": kubectl, "sbatch": sbatch, "aws": aws}[Path(sys.argv[0]).name](sys.argv[1:])
