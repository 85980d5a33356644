package incumbent

// Moment is CLOCK_BOOTTIME in nanoseconds, and Until when trust ends as far as is known: for tests that lay the
// histories of several processes side by side.
func (h *held) Moment() (at, until uint64) { return now(), h.trust.until() }
