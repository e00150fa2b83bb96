package main

import (
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/kopf-runtime/kopf-runtime/examples/database/api/v1"
	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// What follows is for all handlers, whatever they are called for.

// nameOf is what the servers know a database by.
func nameOf(s kopf.Call[*v1.Database]) string {
	return client.ObjectKeyFromObject(s.GetObject()).String()
}

// provisioned is an error for databases that have no server yet.
func provisioned(s kopf.Call[*v1.Database]) error {
	if s.GetObject().Status.Host == "" {
		return kopf.Temporary(fmt.Errorf("there is no server yet"), time.Second)
	}
	return nil
}

// call is what functions need that changes and tasks share.
type call interface {
	kopf.Call[*v1.Database]
	Info(reason, message string)
}

// enter says how far a database is, once.
func enter(h call, phase v1.Phase) {
	if h.GetObject().Status.Phase == phase {
		return
	}
	h.Patch(func(db *v1.Database) { db.Status.Phase = phase })
	h.Info(string(phase), "The database is "+string(phase))
}
