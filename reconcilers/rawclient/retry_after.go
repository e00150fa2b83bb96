package rawclient

import (
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// LongestRetryAfter limits the delay that a server can ask for.
const LongestRetryAfter = 10 * time.Minute

// RetryAfter returns the delay that the API server asks for in this error; zero if it does not.
func RetryAfter(err error) time.Duration {
	seconds, _ := apierrors.SuggestsClientDelay(err)
	return min(time.Duration(max(seconds, 0))*time.Second, LongestRetryAfter)
}
