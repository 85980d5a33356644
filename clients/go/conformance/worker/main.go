// Worker runs the duties that are placed on it and writes down what it is told of each, until its standard input ends.
//
// `worker SIDECAR NODE FILE`: a history for each duty, in `FILE.DUTY`.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	incumbent "incumbent.dev/client"
)

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: worker SIDECAR NODE FILE")
		os.Exit(64)
	}
	sidecar, err := incumbent.New(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	ctx, over := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		over()
	}()
	family := incumbent.Family{Name: os.Args[2], Duties: []string{"a", "b", "c", "d"}, TTL: "3s", Grace: "1s"}
	for ctx.Err() == nil {
		_ = sidecar.Serve(ctx, "work", family, func(duty *incumbent.Duty) error { return work(os.Args[3], duty) })
		time.Sleep(50 * time.Millisecond)
	}
}

func work(file string, duty *incumbent.Duty) error {
	log, err := os.OpenFile(file+"."+duty.Name(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	note := func(format string, values ...any) { fmt.Fprintf(log, format+"\n", values...) }
	at, _ := duty.Moment()
	note("elected %d %d", at, duty.Term())
	fmt.Println(duty.Name(), duty.Term())
	var trusted uint64 // Until when the last yes was true.
	for {
		before, _ := duty.Moment()
		held := duty.Held()
		after, until := duty.Moment()
		note("asked %d %d %d %d %d", before, after, duty.Term(), one(held), until)
		if !held {
			break
		}
		trusted = until
		time.Sleep(5 * time.Millisecond)
	}
	at, _ = duty.Moment()
	note("lost %d %d %d", at, duty.Term(), one(at >= trusted))
	return nil
}

func one(yes bool) int {
	if yes {
		return 1
	}
	return 0
}
