package incumbent

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// Family says which duties there are, and what this process can take on.
type Family struct {
	Name      string            `json:"name"`
	Duties    []string          `json:"duties"`
	Version   string            `json:"version,omitempty"`
	Capacity  *uint32           `json:"capacity,omitempty"`
	MaxDuties *uint32           `json:"max_duties,omitempty"`
	Address   string            `json:"address,omitempty"`
	Labels    map[string]string `json:"labels,omitempty"`
	TTL       string            `json:"ttl,omitempty"`
	Grace     string            `json:"grace,omitempty"`
	// Watchdog, such as "30s", promises that the work of each duty calls Progress at least so often.
	Watchdog string `json:"watchdog,omitempty"`
}

// Duty is one duty that runs here, under a term of its own.
type Duty struct {
	held
	name string
}

// Name is the duty's name in its family.
func (d *Duty) Name() string { return d.name }

// Serve runs work for each duty that is placed on this process, until ctx is done or the sidecar is lost; it returns
// when all work has ended. Work ends when its duty's context does.
func (s *Sidecar) Serve(ctx context.Context, family string, options Family, work func(*Duty) error) error {
	streaming, stopStreaming := context.WithCancel(context.Background())
	defer stopStreaming()
	response, err := s.sendWithin(ctx, streaming, "/v1/families/"+url.PathEscape(family)+"/serve", options, stopStreaming)
	if err != nil {
		return err
	}
	serving := &serving{sidecar: s, work: work, running: map[string]*Duty{}}
	done := make(chan struct{})
	go func() {
		defer close(done)
		serving.read(ctx, response.Body, stopStreaming)
	}()
	select {
	case <-ctx.Done():
	case <-done:
	}
	serving.stopAll("released")
	serving.ending.Wait()
	leaving, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if id := serving.identity(); id != "" {
		// If this fails all is free once the trust that was told has run out.
		_ = s.ask(leaving, http.MethodDelete, "/v1/holds/"+id, nil, nil)
	}
	return ctx.Err()
}

type serving struct {
	sidecar *Sidecar
	work    func(*Duty) error
	ending  sync.WaitGroup
	mutex   sync.Mutex
	id      string
	stopped bool
	running map[string]*Duty
}

func (s *serving) identity() string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.id
}

func (s *serving) read(ctx context.Context, stream io.ReadCloser, cut func()) {
	defer stream.Close()
	ttl := time.Minute
	silence := time.AfterFunc(ttl, cut)
	defer silence.Stop()
	ended := make(chan struct{})
	defer close(ended)
	for lines := bufio.NewScanner(stream); lines.Scan(); {
		var line line
		if json.Unmarshal(lines.Bytes(), &line) != nil {
			break
		}
		switch line.Event {
		case "serving":
			s.mutex.Lock()
			s.id = line.Hold
			s.mutex.Unlock()
			ttl = time.Duration(line.TTL) * time.Millisecond
			go s.renew(time.Duration(line.Renew)*time.Millisecond, ended)
		case "prepare":
			s.report(s.identity(), map[string]string{"state": "prepared", "duty": line.Duty})
		case "start":
			s.start(ctx, line)
		case "stop", "abort":
			s.stop(line)
		case "lost":
			s.stopAll(line.Why)
			return
		}
		silence.Reset(ttl) // A sign of life comes three times as often.
	}
	s.stopAll("cannot-tell") // Without a stream nobody tells us to stop.
}

func (s *serving) start(ctx context.Context, line line) {
	told, tell := context.WithCancelCause(context.WithoutCancel(ctx))
	duty := &Duty{held{sidecar: s.sidecar, trust: newTrust(), ctx: told, cancel: tell, id: line.Run}, line.Duty}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.stopped {
		tell(context.Canceled)
		return
	}
	s.running[line.Run] = duty
	s.ending.Add(1)
	go s.run(duty, line)
}

func (s *serving) run(duty *Duty, line line) {
	defer s.ending.Done()
	err := duty.begin(line)
	if err == nil {
		s.report(line.Run, map[string]string{"state": "started"})
		err = s.work(duty)
	}
	duty.trust.end()
	duty.stop("stopped")
	if err != nil {
		// The work's own: the cluster counts it, and may place it elsewhere.
		s.report(line.Run, map[string]string{"state": "failed", "error": err.Error()})
	} else {
		s.report(line.Run, map[string]string{"state": "stopped"})
	}
	s.mutex.Lock()
	delete(s.running, line.Run)
	s.mutex.Unlock()
}

func (s *serving) stop(line line) {
	s.mutex.Lock()
	duty := s.running[line.Run]
	s.mutex.Unlock()
	if duty == nil {
		return
	}
	if line.Event == "abort" {
		duty.trust.end()
	}
	duty.stop(line.Why)
}

func (s *serving) stopAll(why string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.stopped = true
	for _, duty := range s.running {
		duty.stop(why)
	}
}

// renew lets the sidecar hear of this client where reading isn't enough. What fails here ends by itself: trust runs out.
func (s *serving) renew(every time.Duration, ended <-chan struct{}) {
	ticks := time.NewTicker(max(every, 100*time.Millisecond))
	defer ticks.Stop()
	for {
		select {
		case <-ended:
			return
		case <-ticks.C:
		}
		s.mutex.Lock()
		duties := make([]*Duty, 0, len(s.running))
		for _, duty := range s.running {
			duties = append(duties, duty)
		}
		s.mutex.Unlock()
		if !s.sidecar.unix {
			_ = s.sidecar.ask(context.Background(), http.MethodPut, "/v1/holds/"+s.identity(), map[string]string{"nonce": ""}, nil)
		}
		for _, duty := range duties {
			if !duty.trust.byFile() {
				_ = duty.askTrust(http.MethodPost, "/trust")
			}
		}
	}
}

func (s *serving) report(id string, state map[string]string) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	// The stream, or the end of trust, tells the rest.
	_ = s.sidecar.ask(ctx, http.MethodPost, "/v1/holds/"+id+"/report", state, nil)
}
