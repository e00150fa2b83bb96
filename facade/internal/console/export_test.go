package console

// ForwardLine logs one line of klog.
var ForwardLine = forwardLine
