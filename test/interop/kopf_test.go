package interop_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// call is one call of a handler, by whomever. A diff is as Kopf has it: lists of operation, path, old and new.
type call struct {
	ID     string  `json:"id"`
	Name   string  `json:"name"`
	Retry  int     `json:"retry"`
	Reason string  `json:"reason"`
	Diff   any     `json:"diff"`
	At     float64 `json:"at"` // seconds since 1970
	// The handler's plan and the two values of the field, in relays only.
	Action string `json:"does"`
	Old    string `json:"old"`
	New    string `json:"new"`
}

// operator is one of the two for one namespace.
type operator interface {
	start(namespace string)
	stop()
	// calls are those since the last start.
	calls() []call
}

// pythonKopf is the genuine one, in a process of its own.
type pythonKopf struct {
	script  string   // in testdata; handlers.py by default
	options []string // those of peers; --standalone by default
	env     []string
	log     io.Writer // also gets the output of the process; can be nil
	process *exec.Cmd
	file    string
}

func (k *pythonKopf) start(namespace string) {
	GinkgoHelper()
	k.file = filepath.Join(GinkgoT().TempDir(), "calls")
	args := append([]string{"run", "-n", namespace}, k.options...)
	if k.options == nil {
		args = append(args, "--standalone")
	}
	args = append(args, filepath.Join("testdata", cmp.Or(k.script, "handlers.py")))
	k.process = exec.Command(filepath.Join(kopfFolder, "bin", "kopf"), args...)
	k.process.Env = append(append(os.Environ(), k.env...), "KUBECONFIG="+kubeconfig, "INTEROP_CALLS="+k.file)
	k.process.Stdout, k.process.Stderr = GinkgoWriter, GinkgoWriter
	if k.log != nil {
		k.process.Stderr = io.MultiWriter(GinkgoWriter, k.log)
	}
	Expect(k.process.Start()).To(Succeed())
	DeferCleanup(k.stop)
}

func (k *pythonKopf) stop() {
	if k.process == nil {
		return
	}
	process := k.process
	k.process = nil
	Expect(process.Process.Signal(syscall.SIGTERM)).To(Succeed())
	_ = process.Wait()
}

// calls reads the file while Kopf may be writing. The last line can be incomplete, because a write becomes visible page
// by page: it is left for the next call.
func (k *pythonKopf) calls() (all []call) {
	GinkgoHelper()
	text, err := os.ReadFile(k.file)
	if os.IsNotExist(err) {
		return nil
	}
	Expect(err).NotTo(HaveOccurred())
	for line := range bytes.Lines(text) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			break
		}
		var one call
		Expect(json.Unmarshal(line, &one)).To(Succeed())
		all = append(all, one)
	}
	return all
}
