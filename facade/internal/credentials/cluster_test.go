package credentials_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/credentials"
)

// unreachableKubeconfig is the kubeconfig of a cluster that does not exist.
const unreachableKubeconfig = "testdata/nowhere.yaml"

func withoutCluster(t *testing.T) {
	t.Helper()
	t.Setenv("KUBECONFIG", "")
	t.Setenv("HOME", t.TempDir())
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
}

func TestMissingFiles(t *testing.T) {
	withoutCluster(t)
	folder := t.TempDir()
	missing, another := filepath.Join(folder, "missing"), filepath.Join(folder, "another")
	empty := filepath.Join(folder, "empty")
	if err := os.WriteFile(empty, []byte("kind: Config\napiVersion: v1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		reason    string
		variable  []string
		flag      string
		want, not string
	}{
		"Variable": {
			"the error names the missing file of the variable", []string{missing}, "",
			"KUBECONFIG names files that do not exist: " + missing, another,
		},
		"Several": {
			"the error names only the files that do not exist",
			[]string{missing, empty, another}, "", missing + ", " + another, empty,
		},
		"Exists": {"a file without a cluster is an error", []string{empty}, "", "no cluster is configured", empty},
		"None":   {"without files, the error names none", nil, "", "no cluster is configured", "does not exist"},
		"Flag":   {"the flag overrides the variable", []string{missing}, another, another, missing},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Setenv("KUBECONFIG", strings.Join(tc.variable, string(filepath.ListSeparator)))
			_, err := credentials.Login(tc.flag, "")
			if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), tc.not) {
				t.Errorf("%s: want %q and no %q, got: %v", tc.reason, tc.want, tc.not, err)
			}
		})
	}
}

// TestExplicitSettingsComeFirst shows that explicit settings come before the pod's own cluster, and that an invalid
// setting does not fall back to another cluster: D-login-order.
func TestExplicitSettingsComeFirst(t *testing.T) {
	withoutCluster(t)
	broken := filepath.Join(t.TempDir(), "broken")
	if err := os.WriteFile(broken, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	// A pod, whose service account is not mounted where this test runs.
	t.Setenv("KUBERNETES_SERVICE_HOST", "10.0.0.2")
	t.Setenv("KUBERNETES_SERVICE_PORT", "443")
	cases := map[string]struct{ reason, flag, variable, want string }{
		"Flag": {"the flag comes before the variable and the pod", unreachableKubeconfig, broken,
			"http://127.0.0.1:1"},
		"BrokenFlag": {"a broken file of the flag is an error", broken, unreachableKubeconfig, ""},
		"Variable":   {"the variable comes before the pod", "", unreachableKubeconfig, "http://127.0.0.1:1"},
		"BrokenOne":  {"a broken file of the variable is an error", "", broken, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Setenv("KUBECONFIG", tc.variable)
			info, err := credentials.Login(tc.flag, "")
			if tc.want == "" && err == nil || tc.want != "" && (err != nil || info.Config.Host != tc.want) {
				t.Errorf("%s: want %q, got %+v, error %v", tc.reason, tc.want, info, err)
			}
		})
	}
}

// TestContext shows that a requested context overrides the current one, in a pod as well.
func TestContext(t *testing.T) {
	withoutCluster(t)
	t.Setenv("KUBERNETES_SERVICE_HOST", "10.0.0.2")
	t.Setenv("KUBERNETES_SERVICE_PORT", "443")
	const file = "testdata/contexts.yaml"
	cases := map[string]struct{ reason, path, context, host, namespace string }{
		"None":    {"the current context applies by default", file, "", "http://127.0.0.1:1", "ours"},
		"Other":   {"a requested context overrides the current one", file, "other", "http://127.0.0.1:2", "theirs"},
		"Default": {"a context is found in the files of the environment", "", "other", "http://127.0.0.1:2", "theirs"},
		"Unknown": {"an unknown context is an error", file, "unknown", "", ""},
	}
	for name, tc := range cases {
		for how, login := range map[string]func(string, string) (*credentials.Info, error){
			"Handler": credentials.FromKubeconfig, "BuiltIn": credentials.Login,
		} {
			t.Run(name+how, func(t *testing.T) {
				if tc.path == "" {
					t.Setenv("KUBECONFIG", file)
				}
				info, err := login(tc.path, tc.context)
				if tc.host == "" {
					if err == nil || !strings.Contains(err.Error(), `context "unknown" does not exist`) {
						t.Errorf("%s: error %v", tc.reason, err)
					}
					return
				}
				p, err := connect(t, func() (*credentials.Info, error) { return info, err })
				if err != nil || p.config.Host != tc.host || info.DefaultNamespace != tc.namespace {
					t.Errorf("%s: error %v, host %v, namespace %v", tc.reason, err, p, info)
				}
			})
		}
	}
}

func TestConfigIsNotThrottled(t *testing.T) {
	withoutCluster(t)
	for _, how := range []string{"flag", "variable", "one of several"} {
		path := ""
		switch how {
		case "flag":
			path = unreachableKubeconfig
		case "variable":
			t.Setenv("KUBECONFIG", unreachableKubeconfig)
		default:
			t.Setenv("KUBECONFIG", strings.Join([]string{"missing", unreachableKubeconfig},
				string(filepath.ListSeparator)))
		}
		p, err := connect(t, func() (*credentials.Info, error) { return credentials.Login(path, "") })
		if err != nil {
			t.Fatalf("by the %s: %v", how, err)
		}
		if got := p.config; got.Host != "http://127.0.0.1:1" || got.QPS != -1 {
			t.Errorf("by the %s: %s, %v requests a second", how, got.Host, got.QPS)
		}
	}
}
