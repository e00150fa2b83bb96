package chaos_test

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// auditPolicy has the writes of operators to objects and Leases logged, with the answers.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
omitManagedFields: true
rules:
  - level: RequestResponse
    users: [chaos]
    verbs: [create, update, patch, delete]
    resources:
      - {group: coordination.k8s.io, resources: [leases]}
      - {group: kopf.dev, resources: [kopfexamples]}
  - {level: None}
`

// apiServer is a control plane of one test, which can be started again.
type apiServer struct {
	t           *testing.T
	environment *envtest.Environment
	config      *rest.Config
	api         client.WithWatch
	kubeconfig  string
	auditFile   string
}

// startAPIServer starts a control plane with feature gates.
func startAPIServer(t *testing.T, gates ...string) *apiServer {
	t.Helper()
	folder, s := t.TempDir(), &apiServer{t: t, environment: &envtest.Environment{
		BinaryAssetsDirectory: os.Getenv("KUBEBUILDER_ASSETS"), ErrorIfCRDPathMissing: true,
		CRDDirectoryPaths:        []string{filepath.Join("..", "..", "config", "crd", "kopfexamples.yaml")},
		ControlPlaneStartTimeout: waitTimeout, ControlPlaneStopTimeout: waitTimeout,
	}}
	server, policy := s.environment.ControlPlane.GetAPIServer(), filepath.Join(folder, "audit-policy.yaml")
	server.CertDir = folder // the certificates of users stay valid when the API server is started again
	s.auditFile = filepath.Join(folder, "audit.log")
	// The API server ends only when the watches have ended, which takes as long as a request may.
	server.Configure().Append("feature-gates", gates...).Set("request-timeout", "10s").
		Set("audit-policy-file", policy).Set("audit-log-path", s.auditFile).Set("audit-log-maxsize", "100000")
	s.must(os.WriteFile(policy, []byte(auditPolicy), 0o600))
	t.Cleanup(func() { _ = s.environment.Stop() })
	s.must(s.connect())
	return s
}

func (s *apiServer) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *apiServer) connect() (err error) {
	if s.config, err = s.environment.Start(); err != nil {
		return err
	}
	s.config.QPS = -1
	if s.api, err = client.NewWithWatch(s.config, client.Options{}); err != nil {
		return err
	}
	user, err := s.environment.AddUser(envtest.User{Name: "chaos", Groups: []string{"system:masters"}}, nil)
	if err != nil {
		return err
	}
	content, err := user.KubeConfig()
	s.kubeconfig = string(content)
	return err
}

// restart stops the API server, and starts it again after some time.
func (s *apiServer) restart(down time.Duration) error {
	server := s.environment.ControlPlane.APIServer
	if err := server.Stop(); err != nil {
		return err
	}
	time.Sleep(down)
	return server.Start()
}

// auditedWrite is a write that the API server has accepted.
type auditedWrite struct {
	by       string // the process, which is the user agent
	object   string
	version  int    // the resourceVersion, which is comparable across kinds here
	holder   string // of a Lease: the process
	shard    int    // of a Lease: the range; negative for others
	mark     string // of an object: the text that a handler has written
	received time.Time
	at       time.Time
}

// auditLine has the used fields of an audit event.
type auditLine struct {
	Verb, UserAgent string
	ObjectRef       struct{ Resource, Name string }
	ResponseStatus  struct{ Code int }
	RequestObject   struct {
		Status struct{ Mark string }
	}
	ResponseObject struct {
		Metadata struct{ Name, ResourceVersion string }
		Spec     struct{ HolderIdentity string }
	}
	RequestReceivedTimestamp, StageTimestamp time.Time
}

var rangeLease = regexp.MustCompile(`-range-\d+-(\d+)$`)

// writes returns the accepted writes to objects and to Leases of ranges, in the order of etcd. A write that changed
// nothing is left out.
func (s *apiServer) writes() (all []auditedWrite) {
	s.t.Helper()
	file, err := os.Open(s.auditFile)
	s.must(err)
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 10<<20)
	seen := map[int]bool{}
	for lines.Scan() {
		var line auditLine
		if json.Unmarshal(lines.Bytes(), &line) != nil || line.ResponseStatus.Code >= 300 || line.Verb == "delete" {
			continue
		}
		version, err := strconv.Atoi(line.ResponseObject.Metadata.ResourceVersion)
		if err != nil || seen[version] {
			continue
		}
		seen[version] = true
		w := auditedWrite{
			by: line.UserAgent, object: line.ResponseObject.Metadata.Name, version: version, shard: -1,
			mark:     line.RequestObject.Status.Mark,
			received: line.RequestReceivedTimestamp, at: line.StageTimestamp,
		}
		if line.ObjectRef.Resource == "leases" {
			found := rangeLease.FindStringSubmatch(w.object)
			if found == nil {
				continue
			}
			w.shard, _ = strconv.Atoi(found[1])
			w.holder, _, _ = strings.Cut(line.ResponseObject.Spec.HolderIdentity, "_")
		}
		all = append(all, w)
	}
	s.must(lines.Err())
	slices.SortFunc(all, func(a, b auditedWrite) int { return a.version - b.version })
	return all
}

// changes returns spec.change of all objects.
func (s *apiServer) changes(ctx context.Context) (map[string]int64, error) {
	objects, err := s.list(ctx)
	last := map[string]int64{}
	for _, one := range objects {
		spec, _ := one.Object["spec"].(map[string]any)
		last[one.GetName()], _ = spec["change"].(int64)
	}
	return last, err
}
