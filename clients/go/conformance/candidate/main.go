// Candidate stands for a lease and writes down what it is told, until its standard input ends.
//
// `candidate SIDECAR NODE FILE`; `resign` on its standard input makes it give the lease up and stand again.
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"time"

	incumbent "incumbent.dev/client"
)

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: candidate SIDECAR NODE FILE")
		os.Exit(64)
	}
	sidecar, err := incumbent.New(os.Args[1])
	check(err)
	log, err := os.OpenFile(os.Args[3], os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
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
		stand(ctx, sidecar, os.Args[2], orders, func(format string, values ...any) { fmt.Fprintf(log, format+"\n", values...) })
		time.Sleep(50 * time.Millisecond)
	}
}

func stand(ctx context.Context, sidecar *incumbent.Sidecar, name string, orders <-chan string, note func(string, ...any)) {
	hold, err := sidecar.Hold(ctx, "lease", incumbent.Options{Name: name, TTL: "3s", Grace: "1s"})
	if err != nil {
		return
	}
	defer hold.Release()
	at, _ := hold.Moment()
	note("elected %d %d", at, hold.Term())
	fmt.Println(hold.Term())
	var trusted uint64 // Until when the last yes was true.
	for {
		before, _ := hold.Moment()
		held := hold.Held()
		after, until := hold.Moment()
		note("asked %d %d %d %d %d", before, after, hold.Term(), one(held), until)
		if held {
			trusted = until
		}
		if !held || resigned(orders) {
			break
		}
	}
	at, _ = hold.Moment()
	note("lost %d %d %d", at, hold.Term(), one(at >= trusted))
}

func resigned(orders <-chan string) bool {
	select {
	case order := <-orders:
		return order == "resign"
	case <-time.After(5 * time.Millisecond):
		return false
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
