package source_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/source"
	"github.com/kopf-runtime/kopf-runtime/test/growth"
)

func limiter() workqueue.TypedRateLimiter[source.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[source.Request](time.Second, time.Hour)
}

func requestNamed(name string) source.Request {
	return source.Request{NamespacedName: types.NamespacedName{Name: name}}
}

func tickOf(name string) source.Request {
	return source.Request{NamespacedName: types.NamespacedName{Name: name}, Handler: "t"}
}

// queueFixture adds to a queue and records what comes out of it.
type queueFixture struct {
	*source.PriorityQueue
	mu          sync.Mutex
	servedNames []string
}

func newQueueFixture(places *source.Slots) *queueFixture {
	return &queueFixture{PriorityQueue: source.NewQueue(places, limiter())}
}

func (c *queueFixture) addRequest(name string, priority int, after time.Duration) {
	c.AddWithOpts(priorityqueue.AddOpts{Priority: &priority, After: after}, requestNamed(name))
}

// serve takes requests until the queue is shut down. It releases those for which act returns true.
func (c *queueFixture) serve(act func(source.Request) bool) {
	for {
		r, _, shutdown := c.GetWithPriority()
		if shutdown {
			return
		}
		c.mu.Lock()
		c.servedNames = append(c.servedNames, r.Name+r.Handler)
		c.mu.Unlock()
		if act(r) {
			c.Release(r)
		}
	}
}

func (c *queueFixture) takeServed() string {
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	out := strings.Join(c.servedNames, " ")
	c.servedNames = nil
	return out
}

func releaseRequest(source.Request) bool { return true }

func holdRequest(source.Request) bool { return false }

// TestQueueMerges shows how additions of one request are merged, by priority and time.
func TestQueueMerges(t *testing.T) {
	tests := map[string]struct {
		reason string
		put    func(c *queueFixture)
		want   []string // after each second
	}{
		"Duplicates": {
			reason: "a request is served once for all additions before it",
			put: func(c *queueFixture) {
				c.addRequest("a", source.PriorityChange, 0)
				c.addRequest("a", source.PriorityChange, 0)
			},
			want: []string{"a"},
		},
		"Order": {
			reason: "more urgent requests come first, and equals in the order of their addition",
			put: func(c *queueFixture) {
				c.addRequest("z", source.PriorityResume, 0)
				c.addRequest("b", source.PriorityChange, 0)
				c.addRequest("a", source.PriorityChange, 0)
				c.addRequest("d", source.PriorityDeletion, 0)
			},
			want: []string{"d b a z"},
		},
		"Raised": {
			reason: "a request that becomes more urgent goes behind others of that priority",
			put: func(c *queueFixture) {
				c.addRequest("z", source.PriorityResume, 0)
				c.addRequest("a", source.PriorityResume, 0)
				c.addRequest("b", source.PriorityChange, 0)
				c.addRequest("a", source.PriorityChange, 0)
				c.addRequest("a", source.PriorityRetry, 0)
			},
			want: []string{"b a z"},
		},
		"NotRaised": {
			reason: "a request that does not become more urgent keeps its position",
			put: func(c *queueFixture) {
				c.addRequest("a", source.PriorityChange, 0)
				c.addRequest("b", source.PriorityChange, 0)
				c.addRequest("a", source.PriorityRetry, 0)
				c.addRequest("a", source.PriorityChange, 0)
			},
			want: []string{"a b"},
		},
		"Sooner": {
			reason: "the earliest time counts, in any order of additions",
			put: func(c *queueFixture) {
				c.addRequest("a", source.PriorityRetry, 1500*time.Millisecond)
				c.addRequest("a", source.PriorityRetry, 500*time.Millisecond)
				c.addRequest("a", source.PriorityRetry, 2500*time.Millisecond)
			},
			want: []string{"a", "", ""},
		},
		"NotLater": {
			reason: "a request that is due is not delayed by a later addition",
			put: func(c *queueFixture) {
				c.addRequest("a", source.PriorityChange, 0)
				c.addRequest("a", source.PriorityRetry, time.Second)
			},
			want: []string{"a", "", ""},
		},
		"NowAfterAll": {
			reason: "a change is served before the time of a retry",
			put: func(c *queueFixture) {
				c.addRequest("a", source.PriorityRetry, 90*time.Second)
				c.addRequest("b", source.PriorityRetry, 0)
				c.addRequest("a", source.PriorityChange, 0)
			},
			want: []string{"a b", ""},
		},
		"Times": {
			reason: "delayed requests are served in the order of their times",
			put: func(c *queueFixture) {
				c.addRequest("c", source.PriorityRetry, 2500*time.Millisecond)
				c.addRequest("a", source.PriorityRetry, 500*time.Millisecond)
				c.addRequest("b", source.PriorityDeletion, 1500*time.Millisecond)
			},
			want: []string{"a", "b", "c"},
		},
		"Ticks": {
			reason: "the ticks of an object are separate requests",
			put: func(c *queueFixture) {
				c.addRequest("a", source.PriorityChange, 0)
				c.AddWithOpts(priorityqueue.AddOpts{After: 1500 * time.Millisecond}, tickOf("a"))
			},
			want: []string{"a", "at"},
		},
		"RateLimited": {
			reason: "the delays of the limiter grow until Forget is called",
			put: func(c *queueFixture) {
				c.AddRateLimited(requestNamed("a")) // 1 s
				c.NumRequeues(requestNamed("a"))
				c.AddRateLimited(requestNamed("b"))
				c.Forget(requestNamed("b"))
				c.AddRateLimited(requestNamed("b")) // 1 s again
			},
			want: []string{"", "a b"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newQueueFixture(source.NewSlots(10, source.SlotsObserver{}))
				defer c.ShutDown()
				tc.put(c)
				go c.serve(releaseRequest)
				for n, want := range tc.want {
					time.Sleep(time.Second - time.Millisecond)
					if d := cmp.Diff(want, c.takeServed()); d != "" {
						t.Errorf("%s: second %d: -want, +got:\n%s", tc.reason, n, d)
					}
					time.Sleep(time.Millisecond)
				}
			})
		})
	}
}

// TestQueueExcludesARequestFromItself shows that a request that is added while it is served is served again afterwards,
// never at the same time.
func TestQueueExcludesARequestFromItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newQueueFixture(source.NewSlots(10, source.SlotsObserver{}))
		defer c.ShutDown()
		go c.serve(holdRequest)
		c.addRequest("a", source.PriorityChange, 0)
		c.takeServed()
		c.addRequest("a", source.PriorityRetry, 0)
		c.addRequest("a", source.PriorityDeletion, 0)
		c.addRequest("b", source.PriorityRetry, 0)
		c.Done(requestNamed("a")) // the controller is done, but the request is not released
		if got := c.takeServed(); got != "b" {
			t.Errorf("while a is served: %q", got)
		}
		c.Release(requestNamed("a"))
		if got := c.takeServed(); got != "a" {
			t.Errorf("after the release: %q", got)
		}
		c.addRequest("a", source.PriorityRetry, time.Second)
		c.addRequest("c", source.PriorityRetry, time.Second)
		time.Sleep(2 * time.Second)
		c.Release(requestNamed("a"))
		if got := c.takeServed(); got != "c a" {
			t.Errorf("a request that became due while it was served: %q", got)
		}
		c.Release(requestNamed("never served"))
	})
}

// TestManyWait shows that delayed requests need no goroutines, and that one that is due is found among many.
func TestManyWait(t *testing.T) {
	const many = 100_000
	synctest.Test(t, func(t *testing.T) {
		c := newQueueFixture(source.NewSlots(10, source.SlotsObserver{}))
		defer c.ShutDown()
		before := growth.Goroutines()
		go c.serve(releaseRequest)
		for n := range many {
			c.AddAfter(requestNamed(fmt.Sprint(n)), time.Hour+time.Duration(n)*time.Millisecond)
		}
		c.AddAfter(requestNamed("soon"), time.Second)
		if got := growth.Goroutines(); got > before+1 {
			t.Errorf("got %d goroutines, want at most one more than %d", got, before)
		}
		time.Sleep(2 * time.Second)
		if got := c.takeServed(); got != "soon" {
			t.Errorf("after two seconds: %q", got)
		}
		time.Sleep(2 * time.Hour)
		if got := len(strings.Fields(c.takeServed())); got != many {
			t.Errorf("served %d of %d requests", got, many)
		}
	})
}

// TestQueueUnderLoad shows that under any load no request runs twice at once, no more run than there are slots, and the
// last addition is served.
func TestQueueUnderLoad(t *testing.T) {
	const size, names, adds = 7, 30, 400
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			places := source.NewSlots(size, source.SlotsObserver{})
			all := []*queueFixture{newQueueFixture(places), newQueueFixture(places)}
			var mu sync.Mutex
			busy, added, begun := map[string]bool{}, map[string]time.Time{}, map[string]time.Time{}
			var working sync.WaitGroup
			for number, c := range all {
				luck := rand.New(rand.NewPCG(seed, uint64(number)))
				begin := func(r source.Request) bool {
					mu.Lock()
					defer mu.Unlock()
					key := fmt.Sprint(number, r)
					if busy[key] || len(busy) == size {
						t.Errorf("seed %d: %s begins while %v run", seed, key, busy)
					}
					busy[key], begun[key] = true, time.Now()
					takes := time.Duration(luck.IntN(2000)) * time.Millisecond
					working.Go(func() {
						time.Sleep(takes)
						mu.Lock()
						delete(busy, key)
						mu.Unlock()
						c.Release(r)
					})
					return false
				}
				go c.serve(begin)
				working.Go(func() {
					luck := rand.New(rand.NewPCG(seed, uint64(number+10)))
					priorities := []int{
						source.PriorityDeletion, source.PriorityChange, source.PriorityRetry, source.PriorityResume,
					}
					for range adds {
						r, after := requestNamed(
							fmt.Sprint(luck.IntN(names)),
						), time.Duration(max(0, luck.IntN(3000)-1500))*time.Millisecond
						mu.Lock()
						added[fmt.Sprint(number, r)] = time.Now()
						mu.Unlock()
						c.AddWithOpts(priorityqueue.AddOpts{Priority: &priorities[luck.IntN(4)], After: after}, r)
						time.Sleep(time.Duration(luck.IntN(300)) * time.Millisecond)
					}
				})
			}
			time.Sleep(10 * time.Minute)
			working.Wait()
			for _, c := range all {
				c.ShutDown()
				c.ShutDown()
			}
			synctest.Wait()
			for key, at := range added {
				if begun[key].Before(at) {
					t.Errorf("seed %d: %s was added at %s, but last begun at %s", seed, key, at, begun[key])
				}
			}
		})
	}
}

// TestTheEarlierDelayCounts shows that a rate-limited request is served at the earlier of the limiter's time and its
// own.
func TestTheEarlierDelayCounts(t *testing.T) {
	for reason, tc := range map[string]struct{ after, want time.Duration }{
		"without a time of its own, the limit counts": {0, time.Second},
		"an earlier limit counts":                     {time.Hour, time.Second},
		"a later limit does not count":                {time.Millisecond, time.Millisecond},
		"equal times are one delay":                   {time.Second, time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := newQueueFixture(source.NewSlots(2, source.SlotsObserver{}))
			began := time.Now()
			c.AddWithOpts(priorityqueue.AddOpts{RateLimited: true, After: tc.after}, requestNamed("a"))
			c.GetWithPriority()
			if took := time.Since(began); took != tc.want {
				t.Errorf("%s: served after %v, want %v", reason, took, tc.want)
			}
			c.ShutDown()
		})
	}
}
