package incumbent

import (
	"os"
	"sync/atomic"
)

// trust is the end of trust in one term: read from the sidecar's file, or counted from its answers.
type trust struct {
	process int
	file    atomic.Pointer[uint64] // The word in the mapped file.
	counted atomic.Uint64
	over    atomic.Bool
}

func newTrust() *trust { return &trust{process: os.Getpid()} }

func (t *trust) byFile() bool { return t.file.Load() != nil }

// open uses the trust file if this process may: on the same boot, and with the same clock.
func (t *trust) open(path, hold string, term uint64) {
	if word := mapTrust(path, hold, term); word != nil {
		t.file.Store(word)
	}
}

// count takes in an answer, counted from before its question was sent.
func (t *trust) count(sent, trustedForMs uint64) {
	until := sent + trustedForMs*1_000_000
	for {
		known := t.counted.Load()
		if until <= known || t.counted.CompareAndSwap(known, until) {
			return
		}
	}
}

func (t *trust) end() { t.over.Store(true) }

// until says when trust ends, as far as is known now. It may end sooner.
func (t *trust) until() uint64 {
	if word := t.file.Load(); word != nil {
		return atomic.LoadUint64(word)
	}
	return t.counted.Load()
}

// lasts says whether trust lasts at this moment. Once the answer is no it stays no.
func (t *trust) lasts() bool {
	if t.over.Load() || os.Getpid() != t.process {
		return false
	}
	until := t.until() // Before the clock: a pause in between costs trust, and never adds any.
	if now() < until && !t.over.Load() {
		return true
	}
	t.over.Store(true)
	return false
}
