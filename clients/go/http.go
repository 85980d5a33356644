package incumbent

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// ErrUnreachable is wrapped by errors that say that the sidecar didn't answer. Whether it did what was asked isn't known.
var ErrUnreachable = errors.New("the sidecar didn't answer")

// Problem says that the sidecar refused. Code is what programs go by.
type Problem struct {
	Status int    `json:"status"`
	Code   string `json:"code"`
	Title  string `json:"title"`
	Detail string `json:"detail"`
	Why    string `json:"why"`
}

func (p *Problem) Error() string {
	for _, text := range []string{p.Detail, p.Title} {
		if text != "" {
			return text
		}
	}
	return fmt.Sprintf("status %d", p.Status)
}

// Sidecar is `incumbent serve`. A Unix socket is best: the sidecar sees at once when this process is gone.
type Sidecar struct {
	base   string
	token  string
	unix   bool
	client *http.Client
}

// Option changes how a sidecar is reached.
type Option func(*Sidecar, *http.Transport)

// Token is sent with each request, where the sidecar asks for one.
func Token(token string) Option {
	return func(s *Sidecar, _ *http.Transport) { s.token = token }
}

// TLS says by which certificates the sidecar is known, and this client to it.
func TLS(config *tls.Config) Option {
	return func(_ *Sidecar, transport *http.Transport) { transport.TLSClientConfig = config }
}

// New says where the sidecar is: unix:PATH, http://HOST:PORT or https://HOST:PORT, with a prefix if it has one.
func New(address string, options ...Option) (*Sidecar, error) {
	sidecar := &Sidecar{base: strings.TrimRight(address, "/")}
	// Each request has a connection of its own: a hold's tells the sidecar that its client lives.
	transport := &http.Transport{DisableKeepAlives: true}
	if path, ok := strings.CutPrefix(address, "unix:"); ok && path != "" {
		sidecar.base, sidecar.unix = "http://localhost", true
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", path)
		}
	} else if parsed, err := url.Parse(address); err != nil || parsed.Host == "" || !strings.HasPrefix(parsed.Scheme, "http") {
		return nil, fmt.Errorf("%q is not an address: use unix:PATH, http://HOST:PORT or https://HOST:PORT", address)
	}
	sidecar.client = &http.Client{Transport: transport}
	for _, option := range options {
		option(sidecar, transport)
	}
	return sidecar, nil
}

// send sends one request, and gives back its answer once the head is there. The body lives as long as ctx.
func (s *Sidecar) send(ctx context.Context, method, path string, body any) (*http.Response, error) {
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		content = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(ctx, method, s.base+path, content)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/json, application/x-ndjson")
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if s.token != "" {
		request.Header.Set("Authorization", "Bearer "+s.token)
	}
	response, err := s.client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w: %w", method, path, ErrUnreachable, err)
	}
	if response.StatusCode >= 400 {
		defer response.Body.Close()
		problem := &Problem{Status: response.StatusCode}
		_ = json.NewDecoder(io.LimitReader(response.Body, 1<<16)).Decode(problem) // The status says enough.
		problem.Status = response.StatusCode
		return nil, problem
	}
	return response, nil
}

// ask sends one request, and reads the document that answers it.
func (s *Sidecar) ask(ctx context.Context, method, path string, body, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, 75*time.Second)
	defer cancel()
	response, err := s.send(ctx, method, path, body)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if answer == nil || response.StatusCode == http.StatusNoContent {
		return nil
	}
	if err := json.NewDecoder(response.Body).Decode(answer); err != nil {
		return fmt.Errorf("%s %s: %w: %w", method, path, ErrUnreachable, err)
	}
	return nil
}

// Leader is who holds a lease.
type Leader struct {
	Node    string  `json:"node"`
	Member  string  `json:"member"`
	Address *string `json:"address"`
	Payload *string `json:"payload"`
	Term    uint64  `json:"term"`
}

// Lease is a lease as the store shows it.
type Lease struct {
	Name   string  `json:"lease"`
	Term   uint64  `json:"term"`
	Cursor string  `json:"cursor"`
	Leader *Leader `json:"leader"`
}

// Leader looks who holds a lease. With the last cursor as after it waits until that has changed, for half a minute at most.
func (s *Sidecar) Leader(ctx context.Context, lease, after string) (Lease, error) {
	path := "/v1/leases/" + url.PathEscape(lease)
	if after != "" {
		path += "?wait=30s&after=" + url.QueryEscape(after)
	}
	var found Lease
	err := s.ask(ctx, http.MethodGet, path, nil, &found)
	return found, err
}

// IsLeader says whether a client of this sidecar holds the lease, as load balancers ask it.
func (s *Sidecar) IsLeader(ctx context.Context, lease string) (bool, error) {
	var answer struct{ Here bool }
	err := s.ask(ctx, http.MethodGet, "/leader/"+url.PathEscape(lease), nil, &answer)
	var problem *Problem
	if errors.As(err, &problem) && problem.Status == http.StatusServiceUnavailable {
		return false, nil
	}
	return answer.Here, err
}
