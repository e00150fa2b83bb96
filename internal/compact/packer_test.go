package compact_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/kopf-runtime/kopf-runtime/internal/compact"
)

// sampleTexts returns objects of one kind, which have much in common. A few differ, or are very large.
func sampleTexts() (all []string) {
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

// TestPackers shows that objects are restored unchanged, whatever was packed before them.
func TestPackers(t *testing.T) {
	for name, first := range map[string]string{
		"Alike": "", "Tiny": `{}`, "Large": `{"a":"` + strings.Repeat("0123456789", 10000) + `"}`,
	} {
		t.Run(name, func(t *testing.T) {
			packer, all := compact.NewPacker(nil), sampleTexts()
			if first != "" {
				for i := range 32 {
					all[i] = first
				}
			}
			var objects []*compact.CachedObject
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

// TestPackersOfBothForms shows that a packer accepts both forms, as a replaced server may send the other one.
func TestPackersOfBothForms(t *testing.T) {
	packer := compact.NewPacker(compact.KindOf(clientgoscheme.Scheme, podKind))
	for i, text := range sampleTexts() {
		pod := podOf(func(p *corev1.Pod) { p.Name = fmt.Sprint("p", i) })
		message, err := packer.NewFromMessage(messageOf(t, pod))
		if err != nil {
			t.Fatal(err)
		}
		written, err := packer.New([]byte(text), metav1.TypeMeta{})
		if err != nil {
			t.Fatal(err)
		}
		var found corev1.Pod
		if opened, err := message.Open(); err != nil || !opened.DecodeInto(&found) || found.Spec.NodeName != "node-1" {
			t.Errorf("%v: got %v", err, found)
		}
		if kept, err := written.Text(); string(kept) != text || err != nil {
			t.Errorf("%v: got %s, want %s", err, kept, text)
		}
	}
}
