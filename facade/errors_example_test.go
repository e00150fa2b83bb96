package kopf_test

import (
	"errors"
	"fmt"
	"time"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

func ExampleTemporaryf() {
	err := kopf.Temporary(fmt.Errorf("attaching volume %d: %w", 7, errQuota), 30*time.Second)
	fmt.Println(err, errors.Is(err, errQuota))
	// Output: attaching volume 7: no quota is left true
}

func ExamplePermanentf() {
	err := kopf.Permanent(fmt.Errorf("a database of %d GiB is too large", 200))
	fmt.Println(err, kopf.IsPermanent(err))
	// Output: a database of 200 GiB is too large true
}

// Errors can be asked what they lead to, such as in tests of handlers.
func ExampleRetryAfter() {
	fmt.Println(kopf.RetryAfter(kopf.Temporary(errQuota, time.Minute)))
	fmt.Println(kopf.RetryAfter(errQuota)) // by the handler's options
	fmt.Println(kopf.RetryAfter(kopf.Permanent(errQuota)))
	// Output:
	// 1m0s true
	// 0s false
	// 0s false
}

func ExampleIsPermanent() {
	failed := kopf.Permanent(errQuota)
	fmt.Println(kopf.IsPermanent(failed), kopf.IsPermanent(errQuota))
	fmt.Println(kopf.IsPermanent(kopf.Temporary(failed, time.Minute))) // the outer one decides
	// Output:
	// true false
	// false
}
