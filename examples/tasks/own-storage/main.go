// Command own-storage keeps the memory of its handlers in a table, and not on the objects.
package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	v1 "github.com/kopf-runtime/kopf-runtime/examples/getting-started/api/v1"
	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// Change is one change of one website.
type Change = kopf.Change[*v1.Website]

func main() {
	// Import a driver, such as github.com/jackc/pgx/v5/stdlib for "pgx".
	db, err := sql.Open("pgx", os.Getenv("DATABASE_URL"))
	if err != nil {
		fmt.Fprintln(os.Stderr, "opening the database:", err)
		os.Exit(1)
	}
	op := newOperator(sqlTable{db})
	kopf.Main(op)
}

func newOperator(t table) *kopf.Operator {
	op := kopf.New("websites.example.org", kopf.Settings{
		AddToScheme: runtime.SchemeBuilder{v1.AddToScheme},
		Persistence: kopf.PersistenceSettings{
			DiffbaseStorage: configurations{table: t}, ProgressStorage: newRecords(t),
		},
	})
	websites := kopf.For(op, &v1.Website{})
	websites.On("publish", kopf.CreateUpdateResume(), publish)
	websites.OnEvent("forget", func(_ context.Context, e *kopf.WatchEvent[*v1.Website]) error {
		if e.Type != kopf.WatchEventDeleted {
			return nil
		}
		return t.Forget(string(e.Object.UID))
	})
	return op
}

func publish(_ context.Context, c *Change) error {
	if c.Reason == kopf.ReasonCreate && c.Retry == 0 {
		return kopf.Temporary(errors.New("the disk is full"), time.Minute)
	}
	return nil
}
