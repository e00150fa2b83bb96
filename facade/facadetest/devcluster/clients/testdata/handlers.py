"""Handlers of all kinds. Each call is one line on the standard output."""
import os
import sys

import kopf


def report(call: str) -> None:
    """Write the line in one call: print() writes its line feed separately, and handlers run in several threads."""
    sys.stdout.write(f"{call}\n")
    sys.stdout.flush()


@kopf.on.startup()
def configure(settings: kopf.OperatorSettings, **_):
    settings.peering.standalone = True
    settings.posting.loggers = True
    folder = os.environ["CERTIFICATES"]
    settings.admission.server = kopf.WebhookServer(
        addr="127.0.0.1", certfile=f"{folder}/cert.pem", pkeyfile=f"{folder}/key.pem", cafile=f"{folder}/cert.pem")
    settings.admission.managed = "clients.example.org"


@kopf.on.create("databases", group="clients.example.org")
def create(body, spec, logger, **_):
    kopf.info(body, reason="Provisioned", message=f"an explicit event of {spec['engine']}")
    logger.info("a logged event")
    report("CALL create")
    return {"ok": True}


@kopf.on.update("databases", group="clients.example.org")
def update(diff, **_):
    report("CALL update")


@kopf.on.field("databases", group="clients.example.org", field="spec.engine")
def field(old, new, **_):
    report(f"CALL field {old} {new}")


@kopf.on.delete("databases", group="clients.example.org")
def delete(**_):
    report("CALL delete")


@kopf.timer("databases", group="clients.example.org", interval=1)
def tick(**_):
    report("CALL timer")


@kopf.daemon("databases", group="clients.example.org")
def accompany(stopped, **_):
    report("CALL daemon")
    stopped.wait()
    report("CALL daemon stopped")


@kopf.on.event("databases", group="clients.example.org")
def event(type, **_):
    report(f"CALL event {type}")


@kopf.on.mutate("databases", group="clients.example.org", operation="CREATE")
def mutate(patch, **_):
    patch.spec["replicas"] = 5


@kopf.on.validate("databases", group="clients.example.org", field="spec.replicas", value=13)
def validate(**_):
    raise kopf.AdmissionError("thirteen replicas bring bad luck")
