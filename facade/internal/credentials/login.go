package credentials

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

// maxRefusedLogins is the number of logins in a row that may return refused credentials. New credentials may need a
// moment until the API server accepts them.
const maxRefusedLogins = 4

// runLogin runs one login and stores its credentials, or its final error. It runs in its own goroutine. All waiting
// requests continue when running is closed.
func (v *vault) runLogin() {
	found, err := v.callHandlers()
	v.mu.Lock()
	defer v.mu.Unlock()
	switch {
	case err != nil:
		v.failPermanently(err)
	default:
		v.useSessions(found)
		v.loginCount++
		logf.FromContext(v.ctx).V(loginVerbosity(v.loginCount)).Info("Logged in",
			"handler", v.current.handler, "server", v.current.server.Host, "login", v.loginCount)
	}
	// The result is stored before, so that waiting requests find it.
	close(v.loginDone)
	v.loginDone = nil
}

// loginVerbosity returns the log verbosity of a login. The first login is normal and logged only with --verbose; later
// ones mean that credentials were replaced.
func loginVerbosity(login int) int {
	if login == 1 {
		return 1
	}
	return 0
}

// callHandlers calls the login handlers. It returns at least one session, in the order of use, or an error.
func (v *vault) callHandlers() ([]*session, error) {
	if err := v.delayLogin(); err != nil {
		return nil, err
	}
	// The lock is not held: handlers can take long, and requests with valid credentials must not wait.
	infos, err := v.options.Login(v.ctx)
	if err != nil {
		return nil, err
	}
	var good []*session
	var problems []error
	// The order of the ids makes the errors stable.
	for _, id := range slices.Sorted(maps.Keys(infos)) {
		// One handler with bad credentials must not prevent the use of others.
		s, err := v.acceptCredentials(id, infos[id])
		if err != nil {
			problems = append(problems, fmt.Errorf("handler %q: %w", id, err))
			continue
		}
		good = append(good, s)
	}
	// Invalid credentials of one handler are fatal only if no other handler has valid ones.
	if len(good) == 0 {
		return nil, fmt.Errorf("logging in: %w", cmp.Or(errors.Join(problems...), errNoCredentials))
	}
	for _, err := range problems {
		if !errors.Is(err, errNoCredentials) { // a handler may return no credentials
			logf.FromContext(v.ctx).Error(err, "Ignored credentials")
		}
	}
	// Equal priorities are used in random order, as in Kopf.
	rand.Shuffle(len(good), func(i, j int) { good[i], good[j] = good[j], good[i] })
	slices.SortStableFunc(good, func(a, b *session) int { return cmp.Compare(b.info.Priority, a.info.Priority) })
	return good, nil
}

// delayLogin waits before a login that follows refused credentials: one second, then twice as long each time. It
// returns an error after maxRefusedLogins logins in a row.
func (v *vault) delayLogin() error {
	v.mu.Lock()
	unproven := v.refusedLogins
	v.mu.Unlock()
	if unproven >= maxRefusedLogins {
		return fmt.Errorf("logging in: the API server has refused the credentials of %d logins in a row", unproven)
	}
	if unproven > 0 {
		select {
		case <-v.ctx.Done():
		// The wait is not shortened by a request's context: a login serves all requests.
		case <-time.After(time.Second << (unproven - 1)):
		}
	}
	if v.ctx.Err() != nil {
		return fmt.Errorf("logging in: %w", v.ctx.Err())
	}
	return nil
}

// acceptCredentials validates the credentials of one handler and returns a session with them. Credentials that were
// invalidated before are refused: otherwise, a handler that returns the same ones would cause an endless loop.
func (v *vault) acceptCredentials(handler string, info *Info) (*session, error) {
	switch {
	case info == nil:
		return nil, errNoCredentials
	// Expired credentials would be dropped at once and cause another login.
	case info.hasExpired():
		return nil, fmt.Errorf("the credentials have expired at %s", info.Expiration.Format(time.RFC3339))
	}
	identity := info.contentDigest()
	if v.wasInvalidated(handler, identity) {
		return nil, errors.New("the credentials are those that the API server has refused, or that have expired")
	}
	s, err := openSession(handler, info, v.options.Prepare)
	if err != nil {
		return nil, fmt.Errorf("the credentials make no sense: %w", err)
	}
	s.digest = identity
	return s, nil
}

// wasInvalidated reports whether the credentials were invalidated before.
func (v *vault) wasInvalidated(handler string, identity [sha256.Size]byte) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Contains(v.invalidatedDigests[handler], identity)
}
