// Package controller has a test with a golden file.
package controller

import (
	"testing"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest"
)

func TestOrders(t *testing.T) {
	facadetest.Golden(t, "testdata/orders.golden", "the orders")
}
