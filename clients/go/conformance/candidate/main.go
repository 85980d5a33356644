// Candidate stands for a lease and writes down what it is told, until its standard input ends.
//
// `candidate [--watchdog] SIDECAR NODE FILE`; `resign` on its standard input makes it give the lease up and stand again.
// With `--watchdog` it reports progress until `stick` on its standard input makes it forget to; then it has to lose the
// lease for that reason, and for no other.
// INCUMBENT_TEST_TLS names a directory with the certificates to use: ca.crt, client.crt and client.key.
package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"time"

	incumbent "incumbent.dev/client"
)

func main() {
	arguments := os.Args[1:]
	options := incumbent.Options{TTL: "3s", Grace: "1s"}
	if len(arguments) == 4 && arguments[0] == "--watchdog" {
		arguments, options.Watchdog = arguments[1:], "2s"
	}
	if len(arguments) != 3 {
		fmt.Fprintln(os.Stderr, "usage: candidate [--watchdog] SIDECAR NODE FILE")
		os.Exit(64)
	}
	sidecar, err := incumbent.New(arguments[0], encrypted()...)
	check(err)
	options.Name = arguments[1]
	log, err := os.OpenFile(arguments[2], os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	check(err)
	ctx, over := context.WithCancel(context.Background())
	orders := make(chan string, 16)
	go func() {
		for input := bufio.NewScanner(os.Stdin); input.Scan(); {
			orders <- input.Text()
		}
		over()
	}()
	for ctx.Err() == nil {
		stand(ctx, sidecar, options, orders, func(format string, values ...any) { fmt.Fprintf(log, format+"\n", values...) })
		time.Sleep(50 * time.Millisecond)
	}
}

func encrypted() []incumbent.Option {
	place := os.Getenv("INCUMBENT_TEST_TLS")
	if place == "" {
		return nil
	}
	text, err := os.ReadFile(place + "/ca.crt")
	check(err)
	authorities := x509.NewCertPool()
	authorities.AppendCertsFromPEM(text)
	certificate, err := tls.LoadX509KeyPair(place+"/client.crt", place+"/client.key")
	check(err)
	return []incumbent.Option{incumbent.TLS(&tls.Config{RootCAs: authorities, Certificates: []tls.Certificate{certificate}})}
}

func stand(ctx context.Context, sidecar *incumbent.Sidecar, options incumbent.Options, orders <-chan string, note func(string, ...any)) {
	hold, err := sidecar.Hold(ctx, "lease", options)
	if err != nil {
		return
	}
	defer hold.Release()
	at, _ := hold.Moment()
	note("elected %d %d", at, hold.Term())
	fmt.Println(hold.Term())
	var trusted uint64 // Until when the last yes was true.
	stuck := options.Watchdog == ""
	for {
		before, _ := hold.Moment()
		held := hold.Held()
		after, until := hold.Moment()
		note("asked %d %d %d %d %d", before, after, hold.Term(), one(held), until)
		if held {
			trusted = until
		}
		order := next(orders)
		if !held || order == "resign" {
			break
		}
		stuck = stuck || order == "stick"
		if !stuck {
			_ = hold.Progress("")
			time.Sleep(100 * time.Millisecond)
		}
	}
	at, _ = hold.Moment()
	note("lost %d %d %d", at, hold.Term(), one(at >= trusted))
	if options.Watchdog == "" || ctx.Err() != nil {
		return
	}
	select { // The trust file may say that it ends a moment before the stream says why.
	case <-hold.Context().Done():
	case <-time.After(2 * time.Second):
	}
	if why := context.Cause(hold.Context()); (why != nil && why.Error() == "stuck") != stuck {
		note("lost because %v", why) // No history has such a line.
	}
}

// next is what is asked for next, if anything is soon.
func next(orders <-chan string) string {
	select {
	case order := <-orders:
		return order
	case <-time.After(5 * time.Millisecond):
		return ""
	}
}

func one(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
