package kopf_test

import (
	"errors"
	"fmt"
	"time"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// Temporary wraps the error.
func ExampleTemporary() {
	errQuota := errors.New("the quota is used up")
	err := kopf.Temporary(fmt.Errorf("attaching volume %d: %w", 7, errQuota), 30*time.Second)
	fmt.Println(err, errors.Is(err, errQuota))
	// Output: attaching volume 7: the quota is used up true
}

func ExamplePermanent() {
	err := kopf.Permanent(fmt.Errorf("a database of %d GiB is too large", 200))
	fmt.Println(err)
	// Output: a database of 200 GiB is too large
}
