// Package tunnelstest provides a tunnel for tests. [New] returns a TCP proxy on this machine, and [Proxy.Move] moves it
// to another port. The proxy does not interpret the bytes that it forwards. Programs do not need this package.
package tunnelstest
