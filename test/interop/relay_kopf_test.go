package interop_test

import (
	"encoding/json"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// relayKopf is the genuine one with the handlers of relay.py, in lives that end between two instructions.
type relayKopf struct{ python pythonKopf }

func (k *relayKopf) start(namespace string, plan map[string]string) {
	GinkgoHelper()
	file := filepath.Join(GinkgoT().TempDir(), "plan")
	text, err := json.Marshal(plan)
	Expect(err).NotTo(HaveOccurred())
	Expect(os.WriteFile(file, text, 0o600)).To(Succeed())
	k.python = pythonKopf{script: "relay.py", env: []string{"INTEROP_PLAN=" + file}}
	k.python.start(namespace)
}

func (k *relayKopf) kill() {
	GinkgoHelper()
	process := k.python.process
	k.python.process = nil
	Expect(process.Process.Kill()).To(Succeed())
	_ = process.Wait()
}

func (k *relayKopf) calls() []call { return k.python.calls() }
