"""Handlers of all kinds. Each call is one line on the standard output."""
import os

import kopf


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
    print("CALL create", flush=True)
    return {"ok": True}


@kopf.on.update("databases", group="clients.example.org")
def update(diff, **_):
    print("CALL update", flush=True)


@kopf.on.field("databases", group="clients.example.org", field="spec.engine")
def field(old, new, **_):
    print(f"CALL field {old} {new}", flush=True)


@kopf.on.delete("databases", group="clients.example.org")
def delete(**_):
    print("CALL delete", flush=True)


@kopf.timer("databases", group="clients.example.org", interval=1)
def tick(**_):
    print("CALL timer", flush=True)


@kopf.daemon("databases", group="clients.example.org")
def accompany(stopped, **_):
    print("CALL daemon", flush=True)
    stopped.wait()
    print("CALL daemon stopped", flush=True)


@kopf.on.event("databases", group="clients.example.org")
def event(type, **_):
    print(f"CALL event {type}", flush=True)


@kopf.on.mutate("databases", group="clients.example.org", operation="CREATE")
def mutate(patch, **_):
    patch.spec["replicas"] = 5


@kopf.on.validate("databases", group="clients.example.org", field="spec.replicas", value=13)
def validate(**_):
    raise kopf.AdmissionError("thirteen replicas bring bad luck")
