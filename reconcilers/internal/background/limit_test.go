package background_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/background"
)

// TestPlacesOfALimit shows that Go reports the number of earlier waiters, and that a released slot goes to a later
// caller.
func TestPlacesOfALimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit := &background.Limit{Max: 2}
		over := make(chan struct{})
		wait := func() { <-over }
		var got []string
		begin := func(n int) {
			for range n {
				waits, ahead := limit.Go(wait)
				got = append(got, fmt.Sprint(waits, ahead))
			}
			synctest.Wait()
		}
		begin(4)
		close(over)
		synctest.Wait()
		over = make(chan struct{})
		begin(3)
		close(over)
		want := "false0 false0 true0 true1 false0 false0 true0"
		if got := strings.ReplaceAll(strings.Join(got, ","), " ", ""); got != strings.ReplaceAll(want, " ", ",") {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}

// TestLimitOfDaemons shows that a daemon without a free slot is logged as waiting, and that it does not start if it was
// stopped in the meantime.
func TestLimitOfDaemons(t *testing.T) {
	for name, want := range map[string][]string{
		"Stopped": {"0s first", "1s look", "2s look"},
		"Wanted":  {"0s first", "2s look", "2s second", "2s look"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var w *harness
				wanted, over := true, make(chan struct{})
				daemon := func(id string, call handlers.Func) *handlers.Handler {
					return &handlers.Handler{
						ID: id, Family: handlers.Background, Background: &handlers.BackgroundOptions{Daemon: true},
						Call: func(ctx context.Context, c *handlers.Invocation) error {
							w.note(id)
							return call(ctx, c)
						},
					}
				}
				other := daemon("second", succeed)
				other.Filters = []handlers.Filter{
					func(context.Context, *cause.Cause) (bool, error) { return wanted, nil },
				}
				linger := func(context.Context, *handlers.Invocation) error { <-over; return nil }
				w = newHarness(t, daemon("first", linger), other)
				w.Daemons.Max = 1
				w.runPass()
				w.until(second)
				wanted = name == "Wanted"
				w.runPass()
				w.until(2 * second)
				close(over)
				w.want(minute, want...)
				said := strings.Join(w.logLines, "\n")
				second := strings.Contains(said, `"handler"="second" "limit"=1 "ahead"=0`)
				if strings.Count(said, "Daemon waits for others") != 1 || !second {
					t.Errorf("want one line, about the second daemon: %s", said)
				}
			})
		})
	}
}
