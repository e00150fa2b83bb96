package sharding

import (
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"

	"github.com/kopf-runtime/kopf-runtime/peering"
)

const (
	// tickPeriod is the longest time between two lists. It is the retry period of electors.
	tickPeriod = 2 * time.Second
	// conflictDelay is the longest time before the next list if another replica took the same range.
	conflictDelay = 500 * time.Millisecond
	// requestTimeout is the timeout of one request.
	requestTimeout = 5 * time.Second
	// batchTime is how long a tick may write ranges. The others follow after the next renewal.
	batchTime = 4 * time.Second
	// parallelWrites is the number of ranges that are written at the same time.
	parallelWrites = 8
)

// Options configure the sharing of ranges.
type Options struct {
	// Lease is the namespace and the name of the layout Lease, see election.LeaseName. The other Leases have names that
	// begin with it.
	Lease types.NamespacedName
	// Identity is the unique name of this process. A restarted process must have another one.
	Identity string
	// Count is the number of ranges, at least 1.
	Count int
	// GateFor returns the gate of a range. It is called once for each index.
	GateFor func(index int) peering.AttemptGate
	// SetRanges is called with the sorted indexes of the ranges that this process serves, whenever they change. Their
	// gates may be closed. A range is added before its gate opens. It is removed when its gate is closed and idle, or
	// at once if another process may hold it. SetRanges must return quickly.
	SetRanges func(indexes []int)
	// Paused reports whether the peers have paused the operator in this process. Nil means never. While it is true, the
	// replicas that are not paused share all ranges.
	Paused func() bool
	// Load returns what the other replicas and tools show as the load of this process. It may be nil.
	Load func() Load
}

// Sharding is the part of one process in the sharing of ranges. Its methods may be called concurrently.
type Sharding struct {
	core   *core // used by one goroutine at a time
	client coordinationv1client.LeaseInterface
	log    logr.Logger

	logged string // the last logged failure, to log each once
	// hasLayoutLabel is true if the last list contained the layout: it does not have to be read apart.
	hasLayoutLabel bool

	mu       sync.Mutex
	begun    bool
	isListed bool  // the Leases were listed once
	failure  error // of the last tick; nil after a success
	status   Status
	standby  string
}

// New returns a Sharding that holds no ranges. It closes the gates of all ranges, and makes no requests.
//
// # Errors
//
// It returns an error if the number of ranges is not valid, or if a client cannot be made.
func New(config *rest.Config, http *http.Client, o Options) (*Sharding, error) {
	if o.Count < 1 {
		return nil, fmt.Errorf("sharing %d ranges: there must be at least one", o.Count)
	}
	// The number of requests is limited by the ticks. A limit by time would delay renewals behind other writes.
	config = rest.CopyConfig(config)
	config.QPS, config.RateLimiter = -1, nil
	// Lists of many Leases are smaller as protobuf.
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	leases, err := coordinationv1client.NewForConfigAndClient(config, http)
	if err != nil {
		return nil, fmt.Errorf("making the client of Lease %s: %w", o.Lease, err)
	}
	return &Sharding{
		core: newCore(o), client: leases.Leases(o.Lease.Namespace), log: logr.Discard(),
		standby: fmt.Sprintf("It has not read the Leases of %s yet.", o.Lease),
	}, nil
}
