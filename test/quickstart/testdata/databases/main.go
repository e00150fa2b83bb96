// Command databases has the Go form of the Python operator that the page about replacing replaces.
package main

import (
	"context"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

func main() {
	op := kopf.New("databases.example.org", kopf.AsKopf())
	databases := kopf.ForResource(op, "databases.example.org")
	databases.OnCreate("create_fn", func(context.Context, *kopf.Change[*kopf.Unstructured]) error { return nil })
	kopf.Main(op)
}
