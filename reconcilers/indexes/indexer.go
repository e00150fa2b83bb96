package indexes

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
)

// slow is from when on a call is worth a warning: all events of the kind wait for it.
const slow = 100 * time.Millisecond

const deleted = "DELETED"

// Indexer fills the indices from the events of one kind.
type Indexer struct {
	mu       sync.Mutex
	handlers []*adapters.Handler
	backoff  time.Duration
	log      logr.Logger
	listing  int                           // counts the first listings
	known    map[types.UID]int             // in which one, or after which one, an object was seen last
	accounts map[account]execution.Account // of handlers that failed
	question execution.Attempt             // that handlers are asked with
}

type account struct {
	uid     types.UID
	handler string
}

// Begin is before the first listing of a service of the kind. The handlers are those that index, in the order of
// registration; the backoff is the default delay after temporary errors, zero is 60 seconds; the logger names the kind.
func (x *Indexer) Begin(own []*adapters.Handler, backoff time.Duration, log logr.Logger) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.handlers, x.backoff, x.log, x.question.Now = own, backoff, log, time.Now
	x.listing++
}

// Listed is after it: what it does not have is gone.
func (x *Indexer) Listed() {
	x.mu.Lock()
	defer x.mu.Unlock()
	for uid, listing := range x.known {
		if listing != x.listing {
			x.forget(uid)
		}
	}
}

// Seen brings the indices up to date with an event, on the goroutine of the informer.
func (x *Indexer) Seen(kind string, object *unstructured.Unstructured) {
	x.mu.Lock()
	defer x.mu.Unlock()
	uid := object.GetUID()
	if kind == deleted {
		x.forget(uid)
		return
	}
	if x.known == nil {
		x.known, x.accounts = map[types.UID]int{}, map[account]execution.Account{}
	}
	x.known[uid] = x.listing
	log := x.log.WithValues("namespace", object.GetNamespace(), "name", object.GetName())
	ctx := logf.IntoContext(context.Background(), log)
	c := &cause.Cause{Type: kind, Body: object.Object, Deleting: object.GetDeletionTimestamp() != nil}
	for _, h := range x.handlers {
		x.index(ctx, h, c, uid)
	}
}

func (x *Indexer) forget(uid types.UID) {
	for _, h := range x.handlers {
		h.Description.Index.Into.Remove(uid)
		delete(x.accounts, account{uid, h.Description.ID})
	}
	delete(x.known, uid)
}
