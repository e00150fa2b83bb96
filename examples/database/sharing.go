package main

import (
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/kopf-runtime/kopf-runtime/examples/database/api/v1"
	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// The functions below work for all kinds of handlers.

// nameOf returns the name of a database on the servers.
func nameOf(s kopf.Call[*v1.Database]) string {
	return client.ObjectKeyFromObject(s.GetObject()).String()
}

// provisioned returns a temporary error if the database does not have a server yet.
func provisioned(s kopf.Call[*v1.Database]) error {
	if s.GetObject().Status.Host == "" {
		return kopf.Temporary(fmt.Errorf("there is no server yet"), time.Second)
	}
	return nil
}

// call has the methods of changes and tasks that shared functions need.
type call interface {
	kopf.Call[*v1.Database]
	Info(reason, message string)
}

// enter sets the phase of a database and posts an event, unless it is in this phase already.
func enter(h call, phase v1.Phase) {
	if h.GetObject().Status.Phase == phase {
		return
	}
	h.Patch(func(db *v1.Database) { db.Status.Phase = phase })
	h.Info(string(phase), "The database is "+string(phase))
}
