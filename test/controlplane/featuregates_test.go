package controlplane_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kopf-runtime/kopf-runtime/test/controlplane"
	"github.com/kopf-runtime/kopf-runtime/test/controlplane/assets"
)

// shardedObjects is enough for two parts of which none has all.
const shardedObjects = 40

// TestFeatureGates shows that a gate arrives at kube-apiserver. Without the gate of shardSelector, the server ignores
// that parameter without an error, in lists and in watches.
func TestFeatureGates(t *testing.T) {
	t.Parallel()
	found := find(t)
	cases := map[string]struct {
		reason string
		flags  []string
		whole  bool // each part has all objects
	}{
		"on": {
			reason: "the objects come in two parts",
			flags:  []string{"--feature-gates=ShardedListAndWatch=true"},
		},
		"off": {reason: "the parameter is ignored, so that each part has all objects", whole: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := begin(t, found, controlplane.Options{APIServerFlags: tc.flags})
			createConfigMaps(t, found, c.Kubeconfig())
			lower := parts(t, found, c.Kubeconfig(), "'0x0000000000000000', '0x8000000000000000'")
			upper := parts(t, found, c.Kubeconfig(), "'0x8000000000000000', '0x10000000000000000'")
			for i, how := range []string{"listed", "watched"} {
				ok := lower[i] > 0 && upper[i] > 0 && lower[i]+upper[i] == shardedObjects
				if tc.whole {
					ok = lower[i] == shardedObjects && upper[i] == shardedObjects
				}
				if !ok {
					t.Errorf("%s: of %d objects, %d and %d were %s", tc.reason, shardedObjects, lower[i], upper[i], how)
				}
			}
		})
	}
}

// createConfigMaps creates the objects in a namespace of their own.
func createConfigMaps(t *testing.T, found assets.Assets, kubeconfig string) {
	t.Helper()
	var manifest bytes.Buffer
	for i := range shardedObjects {
		fmt.Fprintf(&manifest, "{apiVersion: v1, kind: ConfigMap, metadata: {name: m-%d, namespace: parts}}\n---\n", i)
	}
	path := filepath.Join(t.TempDir(), "objects.yaml")
	if err := os.WriteFile(path, manifest.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"create", "namespace", "parts"}, {"create", "-f", path}} {
		if out, err := kubectl(t, found, kubeconfig, args...); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
}

// parts returns how many objects of a part are in a list, and in a watch that begins with all of them.
func parts(t *testing.T, found assets.Assets, kubeconfig, bounds string) [2]int {
	t.Helper()
	path := "/api/v1/namespaces/parts/configmaps?shardSelector=" +
		url.QueryEscape("shardRange(object.metadata.uid, "+bounds+")")
	out, err := kubectl(t, found, kubeconfig, "get", "--raw", path)
	var list struct{ Items []any }
	if err != nil || json.Unmarshal([]byte(out), &list) != nil {
		t.Fatalf("listing a part: %v: %s", err, out)
	}
	cmd := exec.CommandContext(t.Context(), found.Path("kubectl"), "--kubeconfig", kubeconfig, "get", "--raw",
		path+"&watch=true&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan")
	stream, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = cmd.Process.Kill(), cmd.Wait() }() // the watch would go on
	watched := 0
	for lines := bufio.NewScanner(stream); lines.Scan(); watched++ {
		if strings.Contains(lines.Text(), "k8s.io/initial-events-end") {
			return [2]int{len(list.Items), watched}
		}
	}
	t.Fatalf("the watch has ended after %d objects, before its bookmark", watched)
	return [2]int{}
}
