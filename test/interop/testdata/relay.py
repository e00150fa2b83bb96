"""The handlers of relay_go_test.go, under the same ids. What each call does is planned, by object, handler and value."""
import asyncio
import json
import os

import kopf

with open(os.environ["INTEROP_PLAN"]) as f:
    PLAN = json.load(f)


def text(value):
    if isinstance(value, dict):
        value = value.get("spec", {}).get("field")
    return value or ""


def note(fn, name, does, reason="", old=None, new=None):
    with open(os.environ["INTEROP_CALLS"], "a") as f:
        line = {"id": fn, "name": name, "does": does, "reason": str(reason), "old": text(old), "new": text(new)}
        f.write(json.dumps(line) + "\n")


async def act(fn, name, spec, retry, reason, old, new):
    does = PLAN.get(f"{name}/{fn}/{spec.get('field')}", "return")
    if does == "once" and retry > 0:
        does = "return"
    note(fn, name, does, reason, old, new)
    if does == "hang":
        await asyncio.sleep(3600)
    if does in ("later", "once"):
        raise kopf.TemporaryError("later", delay=2)


@kopf.on.startup()
def configure(settings: kopf.OperatorSettings, **_):
    settings.posting.enabled = False


@kopf.on.create("kopfexamples")
async def c1(name, spec, retry, reason, old, new, **_):
    await act("c1", name, spec, retry, reason, old, new)
    return {"by": "anybody"}


@kopf.on.create("kopfexamples")
async def c2(name, spec, retry, reason, old, new, **_):
    await act("c2", name, spec, retry, reason, old, new)


@kopf.on.update("kopfexamples")
async def u1(name, spec, retry, reason, old, new, **_):
    await act("u1", name, spec, retry, reason, old, new)


@kopf.on.update("kopfexamples")
async def u2(name, spec, retry, reason, old, new, **_):
    await act("u2", name, spec, retry, reason, old, new)


@kopf.on.field("kopfexamples", field="spec.field")
async def f(name, spec, retry, reason, old, new, **_):
    await act("f", name, spec, retry, reason, old, new)


@kopf.on.resume("kopfexamples", labels={"resumed": "yes"}, deleted=True)
async def r(name, spec, retry, reason, old, new, **_):
    await act("r", name, spec, retry, reason, old, new)


@kopf.on.delete("kopfexamples", labels={"held": "yes"})
async def d1(name, spec, retry, reason, old, new, **_):
    await act("d1", name, spec, retry, reason, old, new)


@kopf.on.delete("kopfexamples", labels={"held": "yes"})
async def d2(name, spec, retry, reason, old, new, **_):
    await act("d2", name, spec, retry, reason, old, new)


@kopf.on.delete("kopfexamples", labels={"optional": "yes"}, optional=True)
async def o(name, spec, retry, reason, old, new, **_):
    await act("o", name, spec, retry, reason, old, new)


@kopf.daemon("kopfexamples", labels={"daemon": "yes"})
async def w(name, spec, stopped, **_):
    does = PLAN.get(f"{name}/w/{spec.get('field')}", "wait")
    note("w", name, does)
    if does == "end":  # when nothing else happens to the object any more
        await asyncio.sleep(2)
        return
    await stopped.wait()
    note("w", name, "stopping")
    if does == "hang":
        await asyncio.sleep(3600)


@kopf.timer("kopfexamples", labels={"timer": "yes"}, interval=1)
async def t(**_):
    pass
