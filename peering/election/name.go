package election

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
)

// LeaseName returns the name of the Lease of an operator that serves these namespaces; none means the whole cluster.
// Operators that serve different namespaces have different Leases, so that each of them can act.
func LeaseName(operator string, namespaces []string) string {
	served := slices.Clone(namespaces)
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
