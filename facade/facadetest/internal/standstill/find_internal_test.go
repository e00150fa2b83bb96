package standstill

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	holderStack = `goroutine 20 [chan receive (durable), 2 minutes, synctest bubble 7]:
example.org/kit.(*gate).pass(0xc000012345)
	/src/kill.go:59 +0x12
example.org/lazy.(*mapper).reload(0xc000054321, {0x1, 0x2})
	/src/mapper.go:10 +0x1
created by example.org/op.run in goroutine 9
	/src/op.go:1 +0x1`
	waiterStack = `goroutine 35 [sync.RWMutex.RLock, 2 minutes, synctest bubble 7]:
sync.runtime_SemacquireRWMutexR(0x0?, 0x0?, 0x0?)
	/go/sema.go:100 +0x25
sync.(*RWMutex).RLock(...)
	/go/rwmutex.go:74
example.org/lazy.(*mapper).get(0xc000054321)
	/src/mapper.go:20 +0x1`
	idleStack = `goroutine 36 [select (no cases) (durable), synctest bubble 7]:
example.org/op.watch()
	/src/op.go:2 +0x1`
	runnableStack = `goroutine 37 [runnable, synctest bubble 7]:
example.org/op.work()
	/src/op.go:3 +0x1`
	ioWaitStack = `goroutine 38 [IO wait, synctest bubble 7]:
net.(*conn).Read(0xc0000)
	/go/net.go:3 +0x1`
	onceStack = `goroutine 39 [sync.Mutex.Lock, synctest bubble 7]:
internal/sync.(*Mutex).lockSlow(0xc00001)
	/go/mutex.go:149 +0x15d
sync.(*Once).doSlow(0xc00001, 0x12)
	/go/once.go:70 +0x1
example.org/fake.(*cloud).open.func1(0xc00002)
	/src/fake.go:1 +0x1`
	outsideStack = `goroutine 1 [sync.Mutex.Lock]:
example.org/lazy.(*mapper).get(0xc000054321)
	/src/mapper.go:20 +0x1`
)

func TestFind(t *testing.T) {
	cases := map[string]struct {
		reason string
		stacks []string
		want   []string // lines of the report in this order; empty without a standstill
	}{
		"Parked": {
			reason: "a goroutine that waits for a mutex is reported with a possible holder",
			stacks: []string{outsideStack, idleStack, waiterStack, holderStack},
			want: []string{
				"the bubble stands still", "Waiting for a mutex:", "goroutine 35 ", "lazy.(*mapper).get",
				"One of these holds a mutex", "goroutine 20 ", "(*gate).pass",
			},
		},
		"Once": {
			reason: "a waiting sync.Once is reported, without a holder in the same code",
			stacks: []string{idleStack, onceStack},
			want:   []string{"Waiting for a mutex:", "fake.(*cloud).open", "No goroutine in the same code"},
		},
		"Idle": {
			reason: "durable waits are not a standstill", stacks: []string{idleStack, holderStack, outsideStack},
		},
		"Running": {
			reason: "a runnable goroutine may still release the mutex",
			stacks: []string{waiterStack, holderStack, runnableStack},
		},
		"Calling": {
			reason: "a goroutine that waits for I/O may still release the mutex",
			stacks: []string{waiterStack, holderStack, ioWaitStack},
		},
		"Outside": {reason: "goroutines outside of bubbles are ignored", stacks: []string{outsideStack}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			found := findStoppedBubbles(strings.Join(tc.stacks, "\n\n") + "\n")
			if len(tc.want) == 0 {
				if len(found) > 0 {
					t.Errorf("%s: found %v", tc.reason, found)
				}
				return
			}
			rest := found["7"].describeWaits()
			for _, line := range tc.want {
				_, after, ok := strings.Cut(rest, line)
				if !ok {
					t.Fatalf("%s: %q is missing, or not in this order:\n%s", tc.reason, line,
						found["7"].describeWaits())
				}
				rest = after
			}
		})
	}
}

func TestSignatureWithoutTimes(t *testing.T) {
	later := strings.NewReplacer("2 minutes", "3 minutes").Replace(waiterStack)
	before, after := findStoppedBubbles(waiterStack)["7"], findStoppedBubbles(later)["7"]
	if diff := cmp.Diff(before.signature, after.signature); diff != "" || before.signature == "" {
		t.Errorf("the signature must not depend on waiting times (-before, +after):\n%s", diff)
	}
}
