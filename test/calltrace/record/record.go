// Package record is the probe that package calltrace adds to functions: it notes who was called on which goroutine.
//
// It stands apart because the whole product imports it in the build of that test: so it imports nothing of the module.
// It never writes anything by itself. Its neighbour is calltrace/creation, which switches it on.
package record

import (
	"bytes"
	"runtime"
	"strconv"
	"sync"
)

// Call is one call of one function of the product.
type Call struct {
	// File is the path of its file, from the root of the repository; Function is Func, Type.Method, or the name of the
	// function around a literal.
	File, Function string
	// Caller is the file of the function of the product that called it; empty if that is unknown, as it is for the
	// first function of a goroutine.
	Caller string
}

var recording struct {
	sync.Mutex
	isOn  bool
	calls []Call
	stack map[int][]string // of files, by goroutine
}

// Begin forgets all calls so far, and notes those that follow.
func Begin() {
	recording.Lock()
	defer recording.Unlock()
	recording.isOn, recording.calls = true, nil
}

// End stops that, and gives the calls in their order.
func End() []Call {
	recording.Lock()
	defer recording.Unlock()
	recording.isOn = false
	return recording.calls
}

// Enter is the probe: `defer record.Enter(file, function)()` at the beginning of a function.
func Enter(file, function string) (leave func()) {
	on := goroutine()
	recording.Lock()
	defer recording.Unlock()
	if recording.stack == nil {
		recording.stack = map[int][]string{}
	}
	stack := recording.stack[on]
	if recording.isOn {
		call := Call{File: file, Function: function}
		if len(stack) > 0 {
			call.Caller = stack[len(stack)-1]
		}
		recording.calls = append(recording.calls, call)
	}
	recording.stack[on] = append(stack, file)
	return func() { endCall(on) }
}

func endCall(on int) {
	recording.Lock()
	defer recording.Unlock()
	stack := recording.stack[on]
	if len(stack) <= 1 {
		delete(recording.stack, on)
		return
	}
	recording.stack[on] = stack[:len(stack)-1]
}

// goroutine is the number that stack traces have.
func goroutine() int {
	var buffer [64]byte
	text := buffer[:runtime.Stack(buffer[:], false)]
	text = bytes.TrimPrefix(text, []byte("goroutine "))
	digits, _, _ := bytes.Cut(text, []byte(" "))
	number, _ := strconv.Atoi(string(digits))
	return number
}
