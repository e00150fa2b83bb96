package election

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
)

// LeaseName returns the name of the Lease of an operator that serves these namespaces, and those with the labels; none
// of both means the whole cluster. Operators that serve different namespaces have different Leases, so that each of
// them can act.
func LeaseName(operator string, namespaces []string, labels labels.Selector) string {
	served := slices.Clone(namespaces)
	if labels != nil {
		served = append(served, "labels "+labels.String())
	}
	if len(served) == 0 {
		served = []string{"*"}
	}
	slices.Sort(served)
	digest := sha256.Sum256([]byte(strings.Join(served, "\n")))
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '.' {
			return r
		}
		return '-'
	}, strings.ToLower(operator))
	return strings.Trim(name, ".-") + "-" + hex.EncodeToString(digest[:4])
}
