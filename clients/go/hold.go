package incumbent

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"
)

// Options say who stands for a lease, and how.
type Options struct {
	// Name is who is to hold it, as people will see it.
	Name    string            `json:"name"`
	Address string            `json:"address,omitempty"`
	Payload string            `json:"payload,omitempty"`
	Labels  map[string]string `json:"labels,omitempty"`
	// Once makes one attempt, and gives a Problem with the code "held" if somebody else has the lease.
	Once     bool   `json:"-"`
	TTL      string `json:"ttl,omitempty"`
	Grace    string `json:"grace,omitempty"`
	Priority *uint8 `json:"priority,omitempty"`
	// OnClose may be "ended": a promise that the connection is direct and that work ends before it is closed.
	OnClose string `json:"on_close,omitempty"`
	// Watchdog, such as "30s", promises that the work calls Progress at least so often.
	Watchdog string `json:"watchdog,omitempty"`
}

// line is one line of a stream.
type line struct {
	Event     string `json:"event"`
	Hold      string `json:"hold"`
	Run       string `json:"run"`
	Duty      string `json:"duty"`
	Term      uint64 `json:"term"`
	TrustFile string `json:"trust_file"`
	Why       string `json:"why"`
	TTL       int64  `json:"ttl_ms"`
	Renew     int64  `json:"renew_ms"`
}

// held is what is common to a lease that is held and a duty that runs: a term, and trust in it.
type held struct {
	sidecar *Sidecar
	trust   *trust
	ctx     context.Context
	cancel  context.CancelCauseFunc
	id      string
	term    atomic.Uint64
}

// Held says whether the work may go on. It asks neither the sidecar nor the store. A no is final.
func (h *held) Held() bool { return h.ctx.Err() == nil && h.Trusted() }

// Trusted says whether trust lasts, also after the work was told to end: for what it does in its grace.
func (h *held) Trusted() bool { return h.trust.lasts() }

// Term is the fencing token: hand it to whatever the work writes to.
func (h *held) Term() uint64 { return h.term.Load() }

// Context is cancelled when the work has to end; context.Cause says why.
func (h *held) Context() context.Context { return h.ctx }

// Progress says that the work comes on, where Watchdog promised it; a text that isn't empty says of a duty what it is at.
// Call it from the work itself. It gives a Problem once it is over.
func (h *held) Progress(text string) error {
	said := map[string]string{}
	if text != "" {
		said["text"] = text
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return h.sidecar.ask(ctx, http.MethodPost, "/v1/holds/"+h.id+"/progress", said, nil)
}

func (h *held) begin(line line) error {
	h.trust.open(line.TrustFile, h.id, line.Term)
	h.term.Store(line.Term)
	if !h.trust.byFile() {
		if err := h.askTrust(http.MethodPost, "/trust"); err != nil {
			return err
		}
	}
	go h.watch()
	return nil
}

func (h *held) askTrust(method, path string) error {
	var secret [8]byte
	_, _ = rand.Read(secret[:])
	question := map[string]string{"nonce": hex.EncodeToString(secret[:])}
	var answer struct {
		Nonce      string `json:"nonce"`
		TrustedFor uint64 `json:"trusted_for_ms"`
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	sent := now()
	if err := h.sidecar.ask(ctx, method, "/v1/holds/"+h.id+path, question, &answer); err != nil {
		return err
	}
	if answer.Nonce == question["nonce"] {
		h.trust.count(sent, answer.TrustedFor)
	}
	return nil
}

// watch cancels the context when trust ends, should nobody have told us before.
func (h *held) watch() {
	for h.trust.lasts() {
		left := int64(h.trust.until()) - int64(now()) + int64(time.Millisecond)
		select {
		case <-time.After(time.Duration(max(left, int64(time.Millisecond)))):
		case <-h.ctx.Done():
			return
		}
	}
	h.stop("cannot-tell")
}

func (h *held) stop(why string) { h.cancel(errors.New(why)) }

// Hold is a lease that this process holds.
type Hold struct {
	held
	close context.CancelFunc
	ended chan struct{}
	once  sync.Once
}

// Hold waits until this process leads. Call Release when the work under it has ended.
func (s *Sidecar) Hold(ctx context.Context, lease string, options Options) (*Hold, error) {
	streaming, stopStreaming := context.WithCancel(context.Background())
	told, tell := context.WithCancelCause(context.WithoutCancel(ctx))
	hold := &Hold{held: held{sidecar: s, trust: newTrust(), ctx: told, cancel: tell}, close: stopStreaming, ended: make(chan struct{})}
	body := struct {
		Options
		Wait bool `json:"wait"`
	}{options, !options.Once}
	response, err := s.sendWithin(ctx, streaming, "/v1/leases/"+url.PathEscape(lease)+"/hold", body, stopStreaming)
	if err != nil {
		stopStreaming()
		return nil, err
	}
	elected := make(chan error, 1)
	go hold.read(response.Body, elected)
	select {
	case err = <-elected:
	case <-ctx.Done():
		err = ctx.Err()
	case <-hold.ended:
		err = &Problem{Status: http.StatusGone, Code: "lost", Detail: fmt.Sprintf("the hold of %q is over: %v", lease, context.Cause(told))}
	}
	if err != nil {
		_ = hold.Release()
		return nil, err
	}
	context.AfterFunc(ctx, func() { hold.cancel(context.Cause(ctx)) })
	return hold, nil
}

// sendWithin sends a request whose stream outlives ctx, while the wait for its head doesn't.
func (s *Sidecar) sendWithin(ctx, streaming context.Context, path string, body any, cancel context.CancelFunc) (*http.Response, error) {
	stop := context.AfterFunc(ctx, cancel)
	response, err := s.send(streaming, http.MethodPost, path, body)
	if !stop() && err == nil {
		response.Body.Close()
		return nil, ctx.Err()
	}
	return response, err
}

// Release says that all work under the hold has ended, and frees the lease. Call it after the work, not before.
func (h *Hold) Release() error {
	h.stop("released")
	h.trust.end()
	defer h.close()
	if h.Term() == 0 { // Nothing was told: the end of the stream says all.
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	// If this fails it is free once the trust that was told has run out.
	return h.sidecar.ask(ctx, http.MethodDelete, "/v1/holds/"+h.id, nil, nil)
}

func (h *Hold) read(stream io.ReadCloser, elected chan<- error) {
	defer close(h.ended)
	defer stream.Close()
	ttl := time.Minute
	silence := time.AfterFunc(ttl, h.close)
	defer silence.Stop()
	for lines := bufio.NewScanner(stream); lines.Scan(); {
		var line line
		if json.Unmarshal(lines.Bytes(), &line) != nil {
			break
		}
		switch line.Event {
		case "waiting":
			h.once.Do(func() {
				h.id = line.Hold
				ttl = time.Duration(line.TTL) * time.Millisecond
				go h.renew(time.Duration(line.Renew) * time.Millisecond)
			})
		case "elected":
			elected <- h.begin(line)
		case "stopping":
			h.stop(line.Why)
		case "lost":
			h.stop(line.Why)
			h.trust.end()
			return
		}
		silence.Reset(ttl) // A sign of life comes three times as often.
	}
	h.stop("cannot-tell") // Without a stream nobody tells us to stop.
}

// renew lets the sidecar hear of this client, where reading the stream isn't enough.
func (h *Hold) renew(every time.Duration) {
	ticks := time.NewTicker(max(every, 100*time.Millisecond))
	defer ticks.Stop()
	for {
		select {
		case <-h.ended:
			return
		case <-ticks.C:
		}
		if h.sidecar.unix && (h.trust.byFile() || h.Term() == 0) {
			continue
		}
		var problem *Problem
		if errors.As(h.askTrust(http.MethodPut, ""), &problem) && problem.Code == "lost" {
			h.stop(problem.Why)
		}
	}
}
