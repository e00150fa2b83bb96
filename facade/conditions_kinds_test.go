package kopf_test

import (
	"context"
	"errors"
	"strings"
	"time"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

const notWrittenMessage = "Cannot write conditions to the status of a kind"

// registerFailingWithConditions registers a handler that fails every minute, with conditions.
func registerFailingWithConditions(s kopf.Selection[*kopf.Unstructured]) {
	s.Conditions()
	registerFailing(s)
}

// registerFailing registers a handler that fails every minute.
func registerFailing(s kopf.Selection[*kopf.Unstructured]) {
	s.OnCreate("create", func(context.Context, *dynamicChange) error {
		return kopf.Temporary(errors.New("later"), time.Minute)
	})
}

func countStatus(way *memapi.Connection) (n int) {
	for _, one := range writes(way) {
		if strings.HasSuffix(one, "/status") {
			n++
		}
	}
	return n
}
