// Package progress reports long waits to the user, one line at a time.
//
// It is apart because the search for binaries, the start of servers and the commands around them all wait, and should
// sound alike. It never writes to standard output, which belongs to results, and never decides how long to wait. Its
// neighbours are assets and controlplane, which report through it.
package progress
