// etcd's own recipe, concurrency.Election: one session a process, one key a candidate. Its answer to "do I
// lead?" is that the session isn't done.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run() error {
	if len(os.Args) != 7 {
		return fmt.Errorf("usage: %s URL NAME LEASE TTL_MS COUNT ASK_MS", os.Args[0])
	}
	endpoint := strings.Replace(os.Args[1], "etcd://", "http://", 1)
	var numbers [3]int
	for at := range numbers {
		number, err := strconv.Atoi(os.Args[4+at])
		if err != nil {
			return err
		}
		numbers[at] = number
	}
	ttl, count, ask := numbers[0]/1000, numbers[1], numbers[2]
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, Logger: zap.NewNop()})
	if err != nil {
		return err
	}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM)
	over, end := context.WithCancel(context.Background())
	go func() { <-ended; end() }()
	fmt.Println("begin", now())
	for over.Err() == nil {
		session, err := concurrency.NewSession(client, concurrency.WithTTL(ttl))
		if err != nil {
			time.Sleep(time.Duration(ttl) * time.Second / 10)
			continue
		}
		for number := range count {
			lease := os.Args[3]
			if count > 1 {
				lease = fmt.Sprintf("%s-%d", lease, number)
			}
			go lead(over, session, lease, os.Args[2], ask)
		}
		select {
		case <-session.Done():
		case <-over.Done():
			// Frees all of its keys at once.
			return session.Close()
		}
	}
	return nil
}

func lead(over context.Context, session *concurrency.Session, lease, name string, ask int) {
	election := concurrency.NewElection(session, "/"+lease)
	if election.Campaign(over, name) != nil {
		return
	}
	fmt.Println("led", now(), lease)
	if ask == 0 {
		<-session.Done()
		fmt.Println("lost", now(), lease)
		return
	}
	for {
		at := now()
		select {
		case <-session.Done():
			fmt.Println("lost", now(), lease)
			return
		default:
			fmt.Println("believes", at, lease)
		}
		time.Sleep(time.Duration(ask) * time.Millisecond)
	}
}

func now() int64 {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &now)
	return now.Nano()
}
