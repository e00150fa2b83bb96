//go:build !unix

package forgery_test

import "time"

// used is unknown on this platform: only the allocated bytes count.
func used() time.Duration { return 0 }
