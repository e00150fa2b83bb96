package growth

import "runtime"

// countRepetitions is how often goroutines are counted.
const countRepetitions = 100

// Goroutines is how many there are. While the runtime puts away those that have ended, it counts dozens of them as
// alive for a moment, even where nothing else runs: so it is the least of several counts, after a collection, which
// stops the world.
func Goroutines() int {
	runtime.GC()
	least := runtime.NumGoroutine()
	for range countRepetitions {
		runtime.Gosched()
		least = min(least, runtime.NumGoroutine())
	}
	return least
}
