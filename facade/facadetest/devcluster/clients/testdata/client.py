"""Plays the calls of the Python client, and fails with the first one that does not do what it should."""
import sys

from kubernetes import client, config, dynamic, watch
from kubernetes.client.exceptions import ApiException

config.load_kube_config()
core, apps, custom = client.CoreV1Api(), client.AppsV1Api(), client.CustomObjectsApi()
namespace = core.create_namespace({"metadata": {"generateName": "python-"}}).metadata.name


def expect(what, got, want):
    print(f"{what}: {got!r}")
    if got != want:
        sys.exit(f"{what}: got {got!r}, want {want!r}")


def refused(what, status, call, *args, **kwargs):
    try:
        call(*args, **kwargs)
    except ApiException as error:
        expect(what, error.status, status)
    else:
        sys.exit(f"{what}: want the status {status}")


made = core.create_namespaced_config_map(namespace, client.V1ConfigMap(
    metadata=client.V1ObjectMeta(name="one", labels={"set": "a"}), data={"color": "green"}))
expect("create", made.data, {"color": "green"})
refused("create again", 409, core.create_namespaced_config_map, namespace, {"metadata": {"name": "one"}})
patched = core.patch_namespaced_config_map("one", namespace, {"data": {"size": "big"}})
expect("patch", patched.data, {"color": "green", "size": "big"})
patched.data = {"color": "blue"}
expect("replace", core.replace_namespaced_config_map("one", namespace, patched).data, {"color": "blue"})
refused("replace a former version", 409, core.replace_namespaced_config_map, "one", namespace, made)
expect("list by label", [o.metadata.name for o in core.list_namespaced_config_map(namespace, label_selector="set=a").items], ["one"])
expect("list by field", core.list_namespaced_config_map(namespace, field_selector="metadata.name=two").items, [])
refused("read a missing one", 404, core.read_namespaced_config_map, "two", namespace)

seen = []
stream = watch.Watch()
for event in stream.stream(core.list_namespaced_config_map, namespace, label_selector="set=a", timeout_seconds=120):
    seen.append((event["type"], event["object"].metadata.name))
    if event["type"] == "ADDED":
        core.delete_namespaced_config_map("one", namespace)
    else:
        stream.stop()
expect("watch", seen, [("ADDED", "one"), ("DELETED", "one")])

template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "web", "image": "web:1"}]}}
apps.create_namespaced_deployment(namespace, {
    "metadata": {"name": "web"}, "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": template}})
expect("scale", apps.patch_namespaced_deployment_scale("web", namespace, {"spec": {"replicas": 3}}).spec.replicas, 3)
expect("status", apps.patch_namespaced_deployment_status("web", namespace, {"status": {"replicas": 3}}).status.replicas, 3)
expect("scaled", apps.read_namespaced_deployment("web", namespace).spec.replicas, 3)

kinds = dynamic.DynamicClient(client.ApiClient())
maps = kinds.resources.get(api_version="v1", kind="ConfigMap")
applied = maps.server_side_apply(
    {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "applied"}, "data": {"color": "red"}},
    name="applied", namespace=namespace, field_manager="python")
expect("dynamic apply", applied.data.color, "red")
expect("dynamic list", [o.metadata.name for o in maps.get(namespace=namespace, field_selector="metadata.name=applied").items], ["applied"])
refused("a custom object of an unknown group", 404, custom.list_namespaced_custom_object, "none.example.org", "v1", namespace, "nones")
expect("version", client.VersionApi().get_code().minor, "36")
expect("groups", "apps" in [g.name for g in client.ApisApi().get_api_versions().groups], True)
lease = client.CoordinationV1Api().create_namespaced_lease(namespace, {"metadata": {"name": "l"}, "spec": {"holderIdentity": "me"}})
expect("lease", lease.spec.holder_identity, "me")
review = client.AuthorizationV1Api().create_self_subject_access_review(
    {"spec": {"resourceAttributes": {"verb": "create", "resource": "pods"}}})
expect("access", review.status.allowed, True)
event = core.create_namespaced_event(namespace, client.CoreV1Event(
    metadata=client.V1ObjectMeta(generate_name="e-"), type="Normal", reason="Made", message="a message",
    involved_object=client.V1ObjectReference(kind="ConfigMap", name="applied", namespace=namespace)))
expect("event", core.list_namespaced_event(namespace, field_selector="reason=Made").items[0].message, event.message)
expect("delete all", core.delete_collection_namespaced_config_map(namespace, label_selector="set=a").status in (None, "Success"), True)
print("all calls are answered")
