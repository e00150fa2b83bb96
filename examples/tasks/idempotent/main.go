// Command idempotent publishes websites by a service. A repeated call of a handler finds the work of the former one.
package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "github.com/kopf-runtime/kopf-runtime/examples/getting-started/api/v1"
	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// Change is one change of one website.
type Change = kopf.Change[*v1.Website]

// hosting is the client of the service.
type hosting interface {
	files
	servers
	// Bill sends a bill. Calls with the same token send one bill.
	Bill(ctx context.Context, token, text string) error
}

// files have names that the caller chooses.
type files interface {
	// Upload stores a text under a name, in place of the former text.
	Upload(ctx context.Context, name, text string) error
	// Remove removes a file or a server. It returns errNotFound if it does not exist.
	Remove(ctx context.Context, name string) error
}

// servers have ids that the service makes.
type servers interface {
	// FindServer returns the id of the server with a label, or nothing.
	FindServer(ctx context.Context, label string) (id string, err error)
	// RentServer returns the id of a new server. Each call rents another one.
	RentServer(ctx context.Context, label string) (id string, err error)
}

var errNotFound = errors.New("not found")

func main() {
	op := newOperator(newMemoryHosting())
	kopf.Main(op)
}

func newOperator(h hosting) *kopf.Operator {
	op := kopf.New("websites.example.org", kopf.Settings{AddToScheme: runtime.SchemeBuilder{v1.AddToScheme}})
	websites, p := kopf.For(op, &v1.Website{}), &publisher{h}
	websites.On("publish", kopf.CreateUpdateResume(), p.publish, kopf.Backoff(10*time.Second))
	websites.OnDelete("close", p.closeSite, kopf.Backoff(10*time.Second))
	return op
}

type publisher struct{ hosting hosting }

func (p *publisher) publish(ctx context.Context, c *Change) error {
	uid := string(c.Object.UID)
	// The name follows from the uid, so a repeated call replaces the file.
	if err := p.hosting.Upload(ctx, uid+".html", c.Object.Spec.Title); err != nil {
		return err
	}
	server, err := p.serverOf(ctx, c)
	if err != nil {
		return err
	}
	// The token follows from the uid and the generation, so a repeated call does not send another bill.
	token := fmt.Sprintf("%s-%d", uid, c.Object.Generation)
	return p.hosting.Bill(ctx, token, c.Object.Spec.Title+" on "+server)
}

// serverOf returns the server of the website. The service makes the ids, so the id is stored before the next step.
func (p *publisher) serverOf(ctx context.Context, c *Change) (string, error) {
	if c.Object.Status.Page != "" {
		return c.Object.Status.Page, nil
	}
	// A process that crashed may have rented a server without storing its id: look for the label first.
	id, err := p.hosting.FindServer(ctx, string(c.Object.UID))
	if err == nil && id == "" {
		log.FromContext(ctx).Info("Renting a server")
		id, err = p.hosting.RentServer(ctx, string(c.Object.UID))
	}
	if err != nil {
		return "", err
	}
	c.Patch(func(w *v1.Website) { w.Status.Page = id })
	return id, c.Flush(ctx)
}

// closeSite looks for the server again, because the status can lack its id. A missing server or file is not an error.
func (p *publisher) closeSite(ctx context.Context, c *Change) error {
	id, err := p.hosting.FindServer(ctx, string(c.Object.UID))
	if err != nil {
		return err
	}
	for _, name := range []string{id, string(c.Object.UID) + ".html"} {
		if err := p.hosting.Remove(ctx, name); err != nil && !errors.Is(err, errNotFound) {
			return err
		}
	}
	log.FromContext(ctx).Info("Returned the server")
	return nil
}
