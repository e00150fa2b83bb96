package program

import (
	"os"
	"strings"
)

// podNamespaceFile has the namespace of the pod, if a service account is mounted.
const podNamespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// readPodNamespace returns the namespace of the pod of this process, or "" outside of pods.
func readPodNamespace() string {
	text, err := os.ReadFile(podNamespaceFile)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}
