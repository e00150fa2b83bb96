package peering

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"os"
	"os/user"
	"slices"
	"strings"
	"time"
)

// ProcessInfo describes a process whose pod does not have an identity of its own.
type ProcessInfo struct {
	// User and Host are the owner of the process and its host.
	User, Host string
	// Started and Random distinguish the processes of a user on a host.
	Started time.Time
	// Random is a short random text.
	Random string
}

// OperatorIdentity returns the name of an operator among its peers: $POD_ID, or a text from the person. A record that
// is written by hand, such as to pause all operators, does not have a process, so its identity is always the same.
// Kopf: detect_own_id.
func OperatorIdentity(pod string, p ProcessInfo, byHand bool) string {
	switch who := p.User + "@" + p.Host; {
	case pod != "":
		return pod
	case byHand:
		return who
	default:
		return fmt.Sprintf("%s/%s/%s", who, p.Started.UTC().Format("20060102150405"), p.Random)
	}
}

// alphabet has the characters of the random texts in Kopf's identities. Kopf omits the letter "g", so this does, too.
const alphabet = "abcdefhijklmnopqrstuvwxyz0123456789"

// CurrentProcess returns the person of this process. Unknown values are replaced by "unknown".
func CurrentProcess(ctx context.Context) ProcessInfo {
	p := ProcessInfo{User: "unknown", Started: time.Now(), Random: randomText(3)}
	if account, err := user.Current(); err == nil {
		p.User = account.Username
	}
	name, err := os.Hostname()
	if err != nil {
		name = "unknown"
	}
	p.Host = specificHostname(name, lookUpHostnames(ctx, name))
	return p
}

// randomText returns a text of random characters from the alphabet. It only has to differ between processes that one
// user starts in the same second, so the small bias of the modulo does not matter.
func randomText(length int) string {
	bytes := make([]byte, length)
	_, _ = rand.Read(bytes) // it does not fail
	for i, b := range bytes {
		bytes[i] = alphabet[int(b)%len(alphabet)]
	}
	return string(bytes)
}

// lookUpHostnames returns the names that the resolver has for a host, and nil if it fails. Names of one address can be
// missing: an identity must never prevent the start of an operator.
func lookUpHostnames(ctx context.Context, name string) (names []string) {
	// A cluster without reverse DNS can let a look-up hang. The operator waits for its identity before it joins.
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	addresses, err := net.DefaultResolver.LookupHost(ctx, name)
	if err != nil {
		return nil
	}
	for _, address := range addresses {
		found, err := net.DefaultResolver.LookupAddr(ctx, address)
		if err != nil {
			continue
		}
		for _, one := range found {
			names = append(names, strings.TrimSuffix(one, "."))
		}
	}
	return names
}

// specificHostname returns the most specific name of a host, by Kopf's rules: the first known name with dots, else the
// first one without dots, else its own name. IP addresses, names of reverse DNS and "localhost" do not count.
func specificHostname(own string, known []string) string {
	dotted := slices.IndexFunc(known, func(name string) bool {
		return strings.Contains(name, ".") && !strings.HasSuffix(name, ".arpa") && net.ParseIP(name) == nil
	})
	plain := slices.IndexFunc(known, func(name string) bool {
		return !strings.Contains(name, ".") && name != "localhost" && net.ParseIP(name) == nil
	})
	name := own
	switch {
	case dotted >= 0:
		name = known[dotted]
	case plain >= 0:
		name = cmp.Or(known[plain], own)
	}
	return strings.TrimSuffix(strings.TrimSuffix(name, ".localdomain"), ".local")
}
