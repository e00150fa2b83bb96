package compact_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/compact"
)

// texts are objects of one kind: much of them is the same. A few are unlike the others, or very large.
func texts() (all []string) {
	for i := range 100 {
		text := fmt.Sprintf(`{"kind":"A","metadata":{"name":"n%d","uid":"u%d"},"spec":{"image":"registry.example.org",`+
			`"replicas":%d,"template":{"command":["run","--port","8080"],"account":"default"}}}`, i, i*i, i%7)
		switch i {
		case 40:
			text = `{"metadata":{}}`
		case 50:
			text = `{"metadata":{"name":"large"},"data":"` + strings.Repeat("abcdefgh", 20000) + `"}`
		}
		all = append(all, text)
	}
	return all
}

// Objects come out as they went in, whatever those before them were.
func TestPackers(t *testing.T) {
	for name, first := range map[string]string{
		"Alike": "", "Tiny": `{}`, "Large": `{"a":"` + strings.Repeat("0123456789", 10000) + `"}`,
	} {
		t.Run(name, func(t *testing.T) {
			packer, all := compact.NewPacker(nil), texts()
			if first != "" {
				for i := range 32 {
					all[i] = first
				}
			}
			var objects []*compact.Object
			for _, text := range all {
				o, err := packer.New([]byte(text), metav1.TypeMeta{})
				if err != nil {
					t.Fatal(err)
				}
				objects = append(objects, o)
			}
			var got []string
			for _, o := range objects {
				text, err := o.Text()
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, string(text))
			}
			if d := cmp.Diff(all, got); d != "" {
				t.Errorf("-want, +got:\n%s", d)
			}
		})
	}
}

// A server may change from one form to the other, if it is replaced.
func TestPackersOfBothForms(t *testing.T) {
	packer := compact.NewPacker(compact.KindOf(clientgoscheme.Scheme, podKind))
	for i, text := range texts() {
		pod := podOf(func(p *corev1.Pod) { p.Name = fmt.Sprint("p", i) })
		message, err := packer.Message(messageOf(t, pod))
		if err != nil {
			t.Fatal(err)
		}
		written, err := packer.New([]byte(text), metav1.TypeMeta{})
		if err != nil {
			t.Fatal(err)
		}
		var found corev1.Pod
		if opened, err := message.Open(); err != nil || !opened.Into(&found) || found.Spec.NodeName != "node-1" {
			t.Errorf("%v: got %v", err, found)
		}
		if kept, err := written.Text(); string(kept) != text || err != nil {
			t.Errorf("%v: got %s, want %s", err, kept, text)
		}
	}
}

// What objects have in common takes memory once.
func TestPackersSaveMemory(t *testing.T) {
	const count = 2000
	kept := func(packer *compact.Packer) (bytes uint64) {
		var before, after runtime.MemStats
		objects := make([]*compact.Object, count)
		runtime.GC()
		runtime.ReadMemStats(&before)
		for i := range objects {
			text := fmt.Appendf(nil, `{"metadata":{"name":"n%d"},"spec":"%s"}`, i, common)
			o, err := packer.New(text, metav1.TypeMeta{})
			if err != nil {
				t.Fatal(err)
			}
			objects[i] = o
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		runtime.KeepAlive(objects)
		return (after.HeapAlloc - before.HeapAlloc) / count
	}
	together, alone := kept(compact.NewPacker(nil)), kept(nil)
	t.Logf("an object takes %d bytes, and %d with what is common to all", together, alone)
	if 2*together > alone {
		t.Errorf("an object takes %d bytes, and without others %d", together, alone)
	}
}

// common is a text that has nothing twice.
var common = func() string {
	var text strings.Builder
	for i := range 150 {
		fmt.Fprintf(&text, "%x", i*i*7919)
	}
	return text.String()
}()
