// Package deafness has proxies that go deaf: from one moment on they deliver nothing on open connections, without an
// error. Its test puts them before an API server, and compares how an operator and one of plain controller-runtime get
// over that.
//
// It is apart because it needs a network and real time, because it tests the timers of TCP and HTTP/2. It asserts no
// times, but prints them: make figures NAME=deafness has the settings as they are by default.
package deafness
