package memapi_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	diff "github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// samples holds, for each kind, the smallest object that the real server accepts, and a change of it.
var samples = map[string][2]string{
	"ConfigMap": {`"data":{"a":"b"}`, `"data":{"a":"c"}`},
	"Endpoints": {`"subsets":[]`, `"subsets":[{"addresses":[{"ip":"10.1.2.3"}]}]`},
	"Event":     {`"reason":"A","involvedObject":{"namespace":"default"}`, `"reason":"B"`},
	"events.k8s.io/Event": {
		`"reason":"A","action":"B","eventTime":"2026-01-02T03:04:05.000000Z","reportingController":"x.example.org/y",` +
			`"reportingInstance":"z","type":"Normal","regarding":{"namespace":"default"}`,
		`"series":{"count":2,"lastObservedTime":"2026-01-02T03:04:06.000000Z"}`,
	},
	"LimitRange":     {`"spec":{"limits":[]}`, `"spec":{"limits":[{"type":"Pod","max":{"cpu":"1"}}]}`},
	"Namespace":      {`"spec":{}`, `"metadata":{"labels":{"a":"b"}}`},
	"Node":           {`"spec":{}`, `"spec":{"unschedulable":true}`},
	"ResourceQuota":  {`"spec":{"hard":{"pods":"1"}}`, `"spec":{"hard":{"pods":"2"}}`},
	"Secret":         {`"type":"Opaque"`, `"data":{"a":"Yg=="}`},
	"ServiceAccount": {`"secrets":[]`, `"automountServiceAccountToken":false`},
	"PersistentVolume": {
		`"spec":{"capacity":{"storage":"1Gi"},"accessModes":["ReadWriteOnce"],"hostPath":{"path":"/x"}}`,
		`"spec":{"persistentVolumeReclaimPolicy":"Delete"}`,
	},
	"PersistentVolumeClaim": {
		`"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}`,
		`"metadata":{"labels":{"a":"b"}}`,
	},
	"Pod":     {`"spec":` + podSpec, `"spec":{"activeDeadlineSeconds":5}`},
	"Service": {`"spec":{"ports":[{"port":80}]}`, `"spec":{"sessionAffinity":"ClientIP"}`},
	"DaemonSet": {
		`"spec":{` + template + `}`, `"spec":{"minReadySeconds":5}`,
	},
	"Deployment":  {`"spec":{` + template + `}`, `"spec":{"replicas":2}`},
	"ReplicaSet":  {`"spec":{` + template + `}`, `"spec":{"replicas":2}`},
	"StatefulSet": {`"spec":{"serviceName":"x",` + template + `}`, `"spec":{"replicas":2}`},
	"HorizontalPodAutoscaler": {
		`"spec":{"maxReplicas":2,"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"x"}}`,
		`"spec":{"maxReplicas":3}`,
	},
	"CronJob": {
		`"spec":{"schedule":"@daily","jobTemplate":{"spec":{"template":{"spec":` + jobSpec + `}}}}`,
		`"spec":{"suspend":true}`,
	},
	"Job":           {`"spec":{"template":{"spec":` + jobSpec + `}}`, `"spec":{"suspend":true}`},
	"Lease":         {`"spec":{}`, `"spec":{"holderIdentity":"me"}`},
	"EndpointSlice": {`"addressType":"IPv4","endpoints":[]`, `"endpoints":[{"addresses":["10.1.2.3"]}]`},
	"Ingress": {
		`"spec":{"defaultBackend":{"service":{"name":"x","port":{"number":80}}}}`,
		`"spec":{"defaultBackend":{"service":{"name":"y","port":{"number":80}}}}`,
	},
	"NetworkPolicy":       {`"spec":{"podSelector":{}}`, `"spec":{"podSelector":{"matchLabels":{"a":"b"}}}`},
	"PodDisruptionBudget": {`"spec":{"minAvailable":1}`, `"spec":{"minAvailable":2}`},
	"Role":                {`"rules":[]`, rules}, "ClusterRole": {`"rules":[]`, rules},
	"RoleBinding": {roleRef, subjects}, "ClusterRoleBinding": {roleRef, subjects},
	"StorageClass": {`"provisioner":"x"`, `"allowVolumeExpansion":true`},
}

const (
	podSpec  = `{"containers":[{"name":"a","image":"a"}],"automountServiceAccountToken":false}`
	jobSpec  = `{"restartPolicy":"Never","containers":[{"name":"a","image":"a"}]}`
	template = `"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":` +
		`{"containers":[{"name":"a","image":"a"}]}}`
	rules    = `"rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}]`
	roleRef  = `"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"view"}`
	subjects = `"subjects":[{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":"me"}]`
)

// sampleOf returns the sample of a kind. Events exist in two groups.
func sampleOf(r memapi.Resource) ([2]string, bool) {
	sample, ok := samples[r.Group+"/"+r.Kind]
	if !ok {
		sample, ok = samples[r.Kind]
	}
	return sample, ok
}

// playBuiltIn discovers, creates, changes and replaces objects of the built-in kinds on both servers.
func playBuiltIn(t *testing.T, genuine, own *player) {
	t.Helper()
	for _, r := range memapi.BuiltIn() {
		spec, ok := sampleOf(r)
		if !ok {
			continue // definitions have separate tests
		}
		want, got := genuine.playKind(r, spec), own.playKind(r, spec)
		if d := diff.Diff(want, got); d != "" {
			t.Errorf("the answers about %s: -real, +memory:\n%s", r.Kind, d)
		}
	}
}

// playKind returns the answers of a server to the requests about one kind.
func (p *player) playKind(r memapi.Resource, spec [2]string) (told []string) {
	p.t.Helper()
	told = append(told, p.discovered(rootOf(r), r.Plural)...)
	all := p.urlOf(r)
	head := fmt.Sprintf(`"apiVersion":%q,"kind":%q`, strings.TrimPrefix(r.Group+"/"+r.Version, "/"), r.Kind)
	begin := `{` + head + `,"metadata":{"name":"parity"},` + spec[0] + `}`
	ask := func(method, url, form, body string) map[string]any {
		response := p.send(method, url, form, body)
		defer func() { _ = response.Body.Close() }()
		var object map[string]any
		if err := json.NewDecoder(response.Body).Decode(&object); err != nil {
			p.t.Fatal(err)
		}
		metadata, _ := object["metadata"].(map[string]any)
		generation := metadata["generation"]
		if r.Kind == "Pod" { // only the newest servers set the generation of pods
			generation = nil
		}
		told = append(told, fmt.Sprintf("%s: %d, generation %v, %v", method, response.StatusCode, generation,
			object["reason"]))
		return object
	}
	ask(http.MethodPost, all, jsonContentType, begin)
	ask(http.MethodPatch, all+"/parity", mergePatchType, `{`+spec[1]+`}`)
	ask(http.MethodPatch, all+"/parity", mergePatchType, `{"metadata":{"labels":{"c":"d"}}}`)
	now := ask(http.MethodGet, all+"/parity", "", "")
	metadata, _ := now["metadata"].(map[string]any)
	metadata["resourceVersion"] = nil
	metadata["annotations"] = map[string]any{"e/x": "y"}
	replaced, err := json.Marshal(now)
	if err != nil {
		p.t.Fatal(err)
	}
	ask(http.MethodPut, all+"/parity", jsonContentType, string(replaced))
	if r.StatusSubresource {
		ask(http.MethodPatch, all+"/parity/status", mergePatchType, `{"metadata":{"annotations":{"e/s":"1"}}}`)
	}
	ask(http.MethodDelete, all+"/parity?gracePeriodSeconds=0&propagationPolicy=Background", "", "")
	return told
}

// rootOf returns the API path of the group and version of a kind.
func rootOf(r memapi.Resource) string {
	if r.Group == "" {
		return "/api/" + r.Version
	}
	return "/apis/" + r.Group + "/" + r.Version
}

// urlOf returns the URL of all objects of a kind, in the default namespace or in the cluster.
func (p *player) urlOf(r memapi.Resource) string {
	if r.Namespaced {
		return p.host + rootOf(r) + "/namespaces/default/" + r.Plural
	}
	return p.host + rootOf(r) + "/" + r.Plural
}

// discovered returns the discovery entries of a kind.
func (p *player) discovered(root, plural string) (told []string) {
	p.t.Helper()
	response := p.send(http.MethodGet, p.host+root, "", "")
	defer func() { _ = response.Body.Close() }()
	var list struct {
		Resources []struct {
			Name, SingularName, Kind string
			ShortNames, Categories   []string
			Namespaced               bool
		}
	}
	if err := json.NewDecoder(response.Body).Decode(&list); err != nil {
		p.t.Fatal(err)
	}
	for _, one := range list.Resources {
		if one.Name == plural || one.Name == plural+"/status" || one.Name == plural+"/scale" {
			told = append(told, fmt.Sprintf("%s %s %s %v %v %t", one.Name, one.Kind,
				cmp.Or(one.SingularName, strings.ToLower(one.Kind)), one.ShortNames, one.Categories, one.Namespaced))
		}
	}
	return told
}
