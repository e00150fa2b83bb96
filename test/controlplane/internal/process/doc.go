// Package process runs programs that end when their starter ends, however that happens.
//
// It is apart because every program this module starts (compilers, servers, the command under test) needs the same
// care: a process group that can be ended as one, and nothing left behind after Ctrl-C, a crash or a kill.
// It never interprets what a program prints. Its neighbours are assets, which compiles with it, and controlplane, which
// runs servers with it.
package process
