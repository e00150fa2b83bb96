"""An operator of Kopf for the same objects as ours. It tells the test when its handlers begin and end."""
import itertools
import json
import os
import random
import threading
import time
import urllib.request

import kopf

identity = os.environ["POD_ID"]
numbers = itertools.count(1)


def tell(**fields):
    body = json.dumps({"By": identity, **fields}).encode()
    try:
        urllib.request.urlopen(os.environ["CHAOS_COLLECTOR"], body).close()
    except OSError:
        os._exit(1)  # the test has ended


def beat():
    before = time.monotonic()
    while True:
        time.sleep(0.1)
        now = time.monotonic()
        still = now - before - 0.1
        if still > 0.1:
            tell(Kind="stall", Lasted=int(still * 1e9))
        before = now


@kopf.on.startup()
def configure(settings: kopf.OperatorSettings, **_):
    settings.peering.lifetime = int(os.environ["CHAOS_LIFETIME"])
    settings.posting.enabled = False
    threading.Thread(target=beat, daemon=True).start()


@kopf.on.create("kopfexamples", id="created")
@kopf.on.update("kopfexamples", id="updated")
def handle(name, spec, **_):
    about = {"Call": f"{identity}-{next(numbers)}", "Object": name, "Change": spec.get("change", 0)}
    tell(Kind="begin", **about)
    time.sleep(random.uniform(0.3, 1.8))
    tell(Kind="end", Text="done", **about)
