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

// Person is what an identity is made of, where a pod does not say its own.
type Person struct {
	// User and Host are whose process it is, and where it runs.
	User, Host string
	// Started tells the processes of a user on a host from each other, together with Random.
	Started time.Time
	// Random is a short text by chance.
	Random string
}

// Identity names an operator among its peers: by $POD_ID, else by the person. One that is made by hand, as to pause all
// operators, has no process: it is the same every time. Kopf: detect_own_id.
func Identity(pod string, p Person, byHand bool) string {
	switch who := p.User + "@" + p.Host; {
	case pod != "":
		return pod
	case byHand:
		return who
	default:
		return fmt.Sprintf("%s/%s/%s", who, p.Started.UTC().Format("20060102150405"), p.Random)
	}
}

// alphabet is of what the random parts of identities are made in Kopf.
const alphabet = "abcdefhijklmnopqrstuvwxyz0123456789"

// Present is the person of this process. What the system does not say is replaced by something that says so.
func Present(ctx context.Context) Person {
	p := Person{User: "unknown", Started: time.Now(), Random: random(3)}
	if account, err := user.Current(); err == nil {
		p.User = account.Username
	}
	name, err := os.Hostname()
	if err != nil {
		name = "unknown"
	}
	p.Host = hostname(name, lookUp(ctx, name))
	return p
}

func random(length int) string {
	bytes := make([]byte, length)
	_, _ = rand.Read(bytes) // it never fails
	for i, b := range bytes {
		bytes[i] = alphabet[int(b)%len(alphabet)]
	}
	return string(bytes)
}

// lookUp gives the names of a host, nil if there are none.
func lookUp(ctx context.Context, name string) (names []string) {
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

// hostname returns the most specific name of a host: of its own name, and those that the network has.
func hostname(own string, known []string) string {
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
