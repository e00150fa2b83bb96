// Package tunnelstest has a tunnel for tests: a TCP proxy on this machine, which can move to another port.
//
// It is apart as nothing of it is for a program. It never looks into what it carries.
package tunnelstest
