package scenarios

import (
	"context"
	"time"

	"github.com/kopf-runtime/kopf-runtime/test/yardstick/cluster"
	"github.com/kopf-runtime/kopf-runtime/test/yardstick/process"
)

// measurement contains the measurements of a part of a trial.
type measurement struct {
	wall, cpu time.Duration
	usage     process.Usage // at the end of the part
	requests  cluster.Requests
}

const megabyte = 1 << 20

// measure runs a function that ends when the operator has finished. If the function starts the operator, the
// measurement begins with that start.
func (t *trial) measure(ctx context.Context, do func(context.Context) error) (m measurement, err error) {
	// Discard the requests made before the measurement.
	if _, err = t.Cluster.Requests(ctx, t.contender.User()); err != nil {
		return m, err
	}
	var before process.Usage
	if t.operator != nil {
		if before, err = t.operator.Usage(); err != nil {
			return m, err
		}
	}
	begun := time.Now()
	if err = do(ctx); err != nil {
		return m, err
	}
	m.wall = time.Since(begun)
	if m.usage, err = t.operator.Usage(); err != nil {
		return m, err
	}
	m.cpu = m.usage.CPU - before.CPU
	m.requests, err = t.Cluster.Requests(ctx, t.contender.User())
	return m, err
}

// noteWork stores the measurements of an operation on all objects.
func (t *trial) noteWork(m measurement) {
	count := float64(t.Objects)
	t.note("wall s", m.wall.Seconds())
	t.note("CPU ms/object", milliseconds(m.cpu)/count)
	t.note("writes/object", float64(m.requests.Writes())/count)
	t.note("requests/object", float64(m.requests.Total())/count)
	t.note("resident MB", float64(m.usage.Resident)/megabyte)
	t.note("peak MB", float64(m.usage.Peak)/megabyte)
	t.Book.Remark(t.phase, t.contender.Name, m.requests.Describe(t.Objects))
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
