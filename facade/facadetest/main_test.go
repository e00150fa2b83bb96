package facadetest_test

import (
	"os"
	"testing"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest"
)

func TestMain(m *testing.M) { os.Exit(facadetest.Main(m, "testdata/*.golden")) }
