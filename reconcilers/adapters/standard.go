package adapters

// Standard is what is around every call, for those who select handlers, and make their attempts, by themselves.
func Standard(metrics *Metrics) Reconciler {
	return Chain(Func(call), Logging, metrics.Adapter, Limits, Deadline, ErrorClasses, SubHandlers, Recovery)
}
