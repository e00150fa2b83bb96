package children

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/storage"
)

// manyChildren returns n children whose names differ by a number and a random text.
func manyChildren(n int) childSet {
	all, random := childSet{}, rand.New(rand.NewPCG(1, 2))
	for i := range n {
		name := fmt.Sprintf("a-child-with-a-name-that-is-not-so-short-%d-%010x", i, random.Uint64()>>24)
		one := identity{"", "ConfigMap", "default", name}
		all[one] = childEntry{version: "v1", uid: types.UID(fmt.Sprint("uid-", i))}
	}
	return all
}

// TestLargeRecordIsPacked shows that a record of 10000 children fits into the annotations and reads back without
// uids.
func TestLargeRecordIsPacked(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	body := map[string]any{"metadata": map[string]any{"uid": "u"}}
	kept, want := manyChildren(10_000), childSet{}
	kept[role] = childEntry{version: "v1", isRetained: true}
	kept[web] = childEntry{version: "v1", run: childRun{"d", outcomeSucceeded}}
	kept[config] = childEntry{version: "v1", isRetained: true, run: childRun{digest: "e"}}
	for child, known := range kept {
		known.uid = ""
		want[child] = known
	}
	const name = "a.org/children-of.create"
	if err := writeRecord(body, "a.org", name, kept); err != nil {
		t.Fatal(err)
	}
	text, _ := body["metadata"].(map[string]any)["annotations"].(map[string]any)[name].(string)
	if len(text) > storage.AnnotationsLimit-64<<10 {
		t.Errorf("the record takes %d bytes", len(text))
	}
	if !strings.HasPrefix(text, `{"parent":"u","children":{},"packed":"`) {
		t.Errorf("a former version cannot read it as an empty record: %.100s", text)
	}
	got, err := readRecord(body, name)
	if d := cmp.Diff(want, got, cmp.AllowUnexported(identity{}, childEntry{}, childRun{})); d != "" || err != nil {
		t.Errorf("%v, -want, +got:\n%.2000s", err, d)
	}
	if other, err := readRecord(bodyOf("copy", name, text), name); err != nil || len(other) > 0 {
		t.Errorf("a copy uses the record of the original: %v, %d children", err, len(other))
	}
}

// TestSmallRecordIsNotPacked shows that a small record stays readable for former versions and people, and that the
// memory keeps the uids.
func TestSmallRecordIsNotPacked(t *testing.T) {
	text, err := storedForm("u", childSet{web: {version: "v1", uid: "1"}})
	if want := `{"parent":"u","children":{"apps/v1/Deployment/default/web":"1"}}`; text != want || err != nil {
		t.Errorf("want a readable record, got %s, %v", text, err)
	}
	var m memory
	m.replaceProof("u", "default", "a", manyChildren(1000))
	if d := cmp.Diff(manyChildren(1000), m.provenRecords("u")["a"],
		cmp.AllowUnexported(identity{}, childEntry{}, childRun{})); d != "" {
		t.Errorf("-want, +got:\n%.2000s", d)
	}
}

// TestForgedPacking shows that an oversized or broken packed record is an error. Everybody who may annotate the
// parent can write one.
func TestForgedPacking(t *testing.T) {
	var bomb bytes.Buffer
	compressor := zlib.NewWriter(&bomb)
	for range 9 {
		if _, err := compressor.Write(bytes.Repeat([]byte{'\n'}, 1<<20)); err != nil {
			t.Fatal(err)
		}
	}
	if err := compressor.Close(); err != nil {
		t.Fatal(err)
	}
	for packed, want := range map[string]string{
		base64.StdEncoding.EncodeToString(bomb.Bytes()): "it has more than 8388608 bytes",
		"%": "unpacking it", "AAAA": "unpacking it",
	} {
		const name = "a.org/children-of.create"
		_, err := readRecord(bodyOf("u", name, `{"parent":"u","packed":"`+packed+`"}`), name)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), name) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestRecordThatDoesNotFit(t *testing.T) {
	const name = "a.org/children-of.create"
	body := bodyOf("u", name, strings.Repeat("x", 200<<10))
	if err := checkFits(body, name, 5); err != nil {
		t.Errorf("a record below the limit must fit: %v", err)
	}
	body["metadata"].(map[string]any)["annotations"].(map[string]any)["other"] = strings.Repeat("x", 56<<10)
	err := checkFits(body, name, 5)
	var limit *limitError
	if !errors.As(err, &limit) || !limit.Permanent() {
		t.Fatalf("want a permanent error about the limit, got %v", err)
	}
	for _, want := range []string{"5 children", "204824 bytes", "262173 bytes", "262144 bytes"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing: %v", want, err)
		}
	}
}

// TestNumberOfPackedChildrenIsLimited shows the limit on children. Each child takes memory, however well its name is
// compressed.
func TestNumberOfPackedChildrenIsLimited(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	_, err := packChildren(manyChildren(maxPackedChildren + 1))
	var limit *limitError
	if !errors.As(err, &limit) || !strings.Contains(err.Error(), "20001 children") {
		t.Errorf("packing too many children: got %v", err)
	}
	if _, err := packChildren(manyChildren(maxPackedChildren)); err != nil {
		t.Errorf("packing as many children as possible: %v", err)
	}
	var text bytes.Buffer
	compressor := zlib.NewWriter(&text)
	for i := range maxPackedChildren + 1 {
		_, _ = fmt.Fprintf(compressor, "v1/ConfigMap/a/%d\n", i)
	}
	if err := compressor.Close(); err != nil {
		t.Fatal(err)
	}
	err = unpackChildren(base64.StdEncoding.EncodeToString(text.Bytes()), childSet{})
	if err == nil || !strings.Contains(err.Error(), "more than 20000 children") {
		t.Errorf("unpacking too many children: got %v", err)
	}
}
