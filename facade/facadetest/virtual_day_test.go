package facadetest_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// runningOperator is a running operator, with the kit or without it.
type runningOperator interface {
	// settle waits until all retries have ended. quiet waits for a time without any activity.
	settle()
	quiet(during time.Duration)
	stop()
}

// day is the course of events in a shopping street from midnight to midnight.
type day struct {
	t             testing.TB
	userClient    client.Client
	startTime     time.Time
	shops         []*kopf.Unstructured
	startOperator func() runningOperator
}

func newDay(t testing.TB, server *memapi.Server, shops int) *day {
	t.Helper()
	server.Install(shopResource)
	d := &day{t: t, userClient: newUserClient(t, server), startTime: time.Now()}
	for i := range shops {
		d.shops = append(d.shops, newShop(fmt.Sprintf("shop-%d", i)))
	}
	return d
}

func (d *day) timeUntil(hour int) time.Duration {
	return time.Until(d.startTime.Add(time.Duration(hour) * time.Hour))
}

// forEachShop calls the function for each shop.
func (d *day) forEachShop(do func(ctx context.Context, shop *kopf.Unstructured) error) {
	d.t.Helper()
	for _, shop := range d.shops {
		if err := do(d.t.Context(), shop); err != nil {
			d.t.Fatal(err)
		}
	}
}

func (d *day) edit(patch string) {
	d.t.Helper()
	d.forEachShop(func(ctx context.Context, shop *kopf.Unstructured) error {
		return d.userClient.Patch(ctx, shop, client.RawPatch("application/merge-patch+json", []byte(patch)))
	})
}

// playDay creates the shops at midnight, edits them at 6, edits them again at 12 while the operator is stopped, and
// deletes them at 20.
func (d *day) playDay() {
	d.t.Helper()
	op := d.startOperator()
	d.forEachShop(func(ctx context.Context, shop *kopf.Unstructured) error { return d.userClient.Create(ctx, shop) })
	op.settle()
	time.Sleep(d.timeUntil(6))
	d.edit(`{"spec":{"owner":"bob","size":2}}`)
	op.settle()
	time.Sleep(d.timeUntil(12))
	op.stop()
	d.edit(`{"spec":{"size":3}}`)
	time.Sleep(d.timeUntil(13))
	op = d.startOperator()
	op.settle()
	time.Sleep(d.timeUntil(20))
	d.forEachShop(func(ctx context.Context, shop *kopf.Unstructured) error { return d.userClient.Delete(ctx, shop) })
	op.settle()
	op.quiet(d.timeUntil(24))
	op.stop()
}

// kitOperator runs operators with the kit.
type kitOperator struct {
	t      testing.TB
	runner *facadetest.Runner
}

func (k kitOperator) settle()                    { k.runner.Settle(40*time.Minute, 4*time.Hour) }
func (k kitOperator) quiet(during time.Duration) { k.runner.Quiet(during) }

func (k kitOperator) stop() {
	if err := k.runner.Stop(); err != nil {
		k.t.Error(err)
	}
}

// startWithKit returns the runners that the day will start.
func (d *day) startWithKit(server *memapi.Server, calls *callCounter) (runners *[]*facadetest.Runner) {
	runners = &[]*facadetest.Runner{}
	d.startOperator = func() runningOperator {
		r := facadetest.Start(d.t, newShopOperator(calls), facadetest.Against(memapi.Config(server)))
		r.Ready()
		*runners = append(*runners, r)
		return kitOperator{d.t, r}
	}
	return runners
}

// shopDayCalls lists the calls for each shop, with hours and minutes.
var shopDayCalls = []string{
	"00:00 create: furnish #1: retry: the sub-handlers are not all finished",
	"00:00 create: furnish/shelves #1: success", "00:00 create: furnish/till #1: retry: sold out",
	"00:00 create: provision #1: retry: no address yet", "00:00 create: register #1: success",
	"00:00 create: sell/spec.owner #1: success", "00:00 run: guard #1: success", "00:15 run: sweep #1: success",
	"00:20 create: provision #2: retry: no address yet", "00:40 create: provision #3: success",
	"01:00 create: furnish #2: success", "01:00 create: furnish/till #2: success", "02:15 run: sweep #1: success",
	"04:15 run: sweep #1: success",
	"06:00 update: resize/spec.size #1: success", "06:00 update: sell/spec.owner #1: success",
	"06:15 run: sweep #1: success", "08:15 run: sweep #1: success", "10:15 run: sweep #1: success",
	"13:00 run: guard #1: success", "13:00 update: resize/spec.size #1: success",
	"13:00 update: take-up #1: success", "13:15 run: sweep #1: success", "15:15 run: sweep #1: success",
	"17:15 run: sweep #1: success", "19:15 run: sweep #1: success",
	"20:00 delete: close #1: retry: customers inside", "20:30 delete: close #2: success",
}

// TestAVirtualDay plays a day of an operator with ten handlers: its retries, its timers, and a restart.
func TestAVirtualDay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memapi.New()
		d := newDay(t, server, 2)
		runners := d.startWithKit(server, newCallCounter())
		d.playDay()
		got := map[string][]string{}
		for _, r := range *runners {
			for _, c := range r.Calls() {
				if c.Handler != "see" { // its number of calls follows the number of writes
					got[c.Name] = append(got[c.Name], d.formatCall(c))
				}
			}
			for _, w := range r.Writes() {
				if w.Code != http.StatusOK && w.Code != http.StatusCreated {
					t.Errorf("every write must succeed, got %s", w)
				}
			}
		}
		for _, shop := range d.shops {
			lines := got[shop.GetName()]
			slices.Sort(lines) // calls of one minute have a random order
			if diff := cmp.Diff(shopDayCalls, lines); diff != "" {
				t.Errorf("the calls for %s (-want, +got):\n%s", shop.GetName(), diff)
			}
			if left := server.Object(shopResource, "default", shop.GetName()); left != nil {
				t.Errorf("%s must be deleted, got %v", shop.GetName(), left)
			}
		}
	})
}

// formatCall formats a call without its object, with its time.
func (d *day) formatCall(c facadetest.HandlerCall) string {
	minutes := int(c.Began.Sub(d.startTime).Minutes())
	text := strings.Replace(c.String(), " Shop default/"+c.Name, "", 1)
	return fmt.Sprintf("%02d:%02d %s", minutes/60, minutes%60, text)
}
