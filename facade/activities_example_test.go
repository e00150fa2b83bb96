package kopf_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// runUntilReady runs the operator, calls the function once the operator is ready, and stops the operator.
func runUntilReady(op *kopf.Operator, settings kopf.RunSettings, then func()) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		<-op.Ready()
		then()
		cancel()
	}()
	settings.Log, settings.Metrics = logr.Discard(), prometheus.NewRegistry()
	return op.Run(ctx, settings)
}

// The handler runs before all other handlers and can change settings.
func ExampleOperator_OnStartup() {
	op := kopf.New("notes.example.org")
	op.OnStartup("configure", func(_ context.Context, a *kopf.Activity) error {
		if a.Retry == 0 {
			return kopf.Temporary(errors.New("the disk is not mounted"), time.Millisecond)
		}
		a.Settings.Queueing.WorkerLimit = 20
		fmt.Println("configured, attempt", a.Retry+1)
		return nil
	})

	config := memapi.Config(memapi.New())
	err := runUntilReady(op, kopf.RunSettings{Config: config}, func() { fmt.Println("ready") })
	fmt.Println(err)
	// Output:
	// configured, attempt 2
	// ready
	// <nil>
}

// The handler runs after all other handlers.
func ExampleOperator_OnCleanup() {
	op := kopf.New("notes.example.org")
	op.OnCleanup("close", func(context.Context, *kopf.Activity) error {
		fmt.Println("closed")
		return nil
	})

	config := memapi.Config(memapi.New())
	err := runUntilReady(op, kopf.RunSettings{Config: config}, func() { fmt.Println("ready") })
	fmt.Println(err)
	// Output:
	// ready
	// closed
	// <nil>
}

// The handler returns the address of the cluster and the credentials.
func ExampleOperator_OnLogin() {
	config := memapi.Config(memapi.New())
	op := kopf.New("notes.example.org")
	op.OnLogin("vault", func(context.Context, *kopf.Activity) (*kopf.ConnectionInfo, error) {
		fmt.Println("login")
		return &kopf.ConnectionInfo{Config: config, Token: "secret", Expiration: time.Now().Add(time.Hour)}, nil
	})

	err := runUntilReady(op, kopf.RunSettings{}, func() { fmt.Println("ready") })
	fmt.Println(err)
	// Output:
	// login
	// ready
	// <nil>
}

// The result is part of the response of the liveness endpoint.
func ExampleOperator_OnProbe() {
	op := kopf.New("notes.example.org")
	op.OnProbe("pool", func(context.Context, *kopf.Activity) (any, error) {
		return map[string]int{"connections": 3}, nil
	})

	listener, _ := net.Listen("tcp", "127.0.0.1:0") // finds a free port
	url := "http://" + listener.Addr().String() + "/healthz"
	_ = listener.Close()
	settings := kopf.RunSettings{Config: memapi.Config(memapi.New()), Liveness: url}
	err := runUntilReady(op, settings, func() {
		answer, err := http.Get(url)
		if err != nil {
			panic(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		fmt.Println(answer.StatusCode, string(text), err)
	})
	fmt.Println(err)
	// Output:
	// 200 {"pool":{"connections":3}} <nil>
	// <nil>
}
