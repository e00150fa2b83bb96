package e2e_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// auditPolicy has the requests of users with restricted permissions written to the audit log. The API server writes a
// line before it answers.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - {level: None, userGroups: [system:masters]}
  - {level: None, users: [system:apiserver]}
  - {level: Metadata}
`

// auditFile is the audit log of the API server.
var auditFile string

// auditRequests makes the API server write an audit log into a folder, and returns its path.
func auditRequests(server *envtest.APIServer, folder string) (file string, err error) {
	policy := filepath.Join(folder, "audit-policy.yaml")
	file = filepath.Join(folder, "audit.log")
	server.Configure().Set("audit-policy-file", policy).Set("audit-log-path", file)
	return file, os.WriteFile(policy, []byte(auditPolicy), 0o600)
}

// auditedRequests returns how many requests a user has sent, and the refused ones: verbs and paths.
func auditedRequests(user string) (total int, refused []string) {
	GinkgoHelper()
	for line := range strings.Lines(string(contentOf(auditFile))) {
		var entry struct {
			User        struct{ Username string }
			Verb        string
			RequestURI  string
			Annotations map[string]string
		}
		if !strings.Contains(line, user) || !strings.HasSuffix(line, "\n") { // the last line may be incomplete
			continue
		}
		Expect(json.Unmarshal([]byte(line), &entry)).To(Succeed())
		if entry.User.Username != user {
			continue
		}
		total++
		// Responses with this code have other reasons as well, such as a terminating namespace.
		if entry.Annotations["authorization.k8s.io/decision"] == "forbid" {
			refused = append(refused, entry.Verb+" "+entry.RequestURI)
		}
	}
	return total, refused
}

// refusedRequests returns the refused requests of a user.
func refusedRequests(user string) []string {
	_, refused := auditedRequests(user)
	return refused
}
