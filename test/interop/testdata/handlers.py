"""The same handlers as those of operator_test.go, under the same ids. Each call is a line of JSON."""
import json
import os
import time

import kopf


def note(fn, name, retry, reason, diff):
    with open(os.environ["INTEROP_CALLS"], "a") as f:
        line = {"id": fn, "name": name, "retry": retry, "reason": str(reason), "diff": [list(item) for item in diff], "at": time.time()}
        f.write(json.dumps(line) + "\n")


@kopf.on.startup()
def configure(settings: kopf.OperatorSettings, **_):
    settings.posting.enabled = False


@kopf.on.create("kopfexamples")
def create_fn(name, retry, reason, diff, **_):
    note("create_fn", name, retry, reason, diff)
    return {"by": "anybody"}


@kopf.on.create("kopfexamples", labels={"retried": "yes"})
def retried_fn(name, retry, reason, diff, **_):
    note("retried_fn", name, retry, reason, diff)
    if retry == 0:
        raise kopf.TemporaryError("later", delay=5)


@kopf.on.update("kopfexamples")
def update_fn(name, retry, reason, diff, **_):
    note("update_fn", name, retry, reason, diff)


@kopf.on.field("kopfexamples", field="spec.field")
def field_fn(name, retry, reason, diff, **_):
    note("field_fn/spec.field", name, retry, reason, diff)


@kopf.on.delete("kopfexamples")
def delete_fn(name, retry, reason, diff, **_):
    note("delete_fn", name, retry, reason, diff)
