package credentials_test

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/credentials"
	"github.com/kopf-runtime/kopf-runtime/test/vectors"
)

func TestVectorsKubeconfig(t *testing.T) {
	vectors.Run(t, "kubeconfig", func(t *testing.T, input vectors.Fields, want vectors.Expected) {
		vectors.Known(t, input, "files")
		folder, files := t.TempDir(), []string{}
		for i, content := range input.List("files") {
			data, err := json.Marshal(content)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, filepath.Join(folder, strconv.Itoa(i)))
			if err := os.WriteFile(files[i], data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		t.Setenv("KUBECONFIG", strings.Join(files, string(filepath.ListSeparator)))
		info, err := credentials.FromKubeconfig("", "")
		if want.Failed(t, info, err) {
			return
		}
		if d := cmp.Diff(want.Value, any(described(info))); d != "" {
			t.Errorf("-want, +got:\n%s", d)
		}
	})
}

// described returns the set fields under Kopf's names.
func described(info *credentials.Info) map[string]any {
	fields := map[string]any{"priority": int64(info.Priority), "trust_env": info.TrustEnv}
	for key, value := range map[string]string{
		"server": info.Server, "default_namespace": info.DefaultNamespace, "token": info.Token,
		"username": info.Username, "password": info.Password, "proxy_url": info.ProxyURL,
		"ca_data":          base64.StdEncoding.EncodeToString(info.CAData),
		"certificate_data": base64.StdEncoding.EncodeToString(info.CertificateData),
		"private_key_data": base64.StdEncoding.EncodeToString(info.PrivateKeyData),
	} {
		if value != "" {
			fields[key] = value
		}
	}
	if info.Insecure {
		fields["insecure"] = true
	}
	return fields
}
