// client-go's leader election: a Lease object, renewed by RetryPeriod. It answers "do I lead?" with IsLeader, which
// compares two names that it has seen.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
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
	var numbers [3]int
	for at := range numbers {
		number, err := strconv.Atoi(os.Args[4+at])
		if err != nil {
			return err
		}
		numbers[at] = number
	}
	ttl, count, ask := time.Duration(numbers[0])*time.Millisecond, numbers[1], numbers[2]
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	// kubernetes://token@host:port
	token, host, _ := strings.Cut(strings.TrimPrefix(os.Args[1], "kubernetes://"), "@")
	client, err := kubernetes.NewForConfig(&rest.Config{
		Host:            "https://" + host,
		BearerToken:     token,
		TLSClientConfig: rest.TLSClientConfig{Insecure: true},
		// A flood of its own requests is no business of this measurement.
		QPS: -1,
		// An attempt that nothing answers ends before the next is due.
		Timeout: ttl / 3,
	})
	if err != nil {
		return err
	}
	over, end := context.WithCancel(context.Background())
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM)
	go func() { <-ended; end() }()
	fmt.Println("begin", now())
	done := make(chan struct{})
	for number := range count {
		lease := os.Args[3]
		if count > 1 {
			lease = fmt.Sprintf("%s-%d", lease, number)
		}
		go func() {
			// Who has lost stands again.
			for over.Err() == nil {
				stand(over, client, lease, ttl, time.Duration(ask)*time.Millisecond)
			}
			done <- struct{}{}
		}()
	}
	for range count {
		<-done
	}
	return nil
}

// stand runs one election until leadership is lost or the program is told to end, and then gives the lease up.
func stand(over context.Context, client kubernetes.Interface, lease string, ttl, ask time.Duration) {
	var elector *leaderelection.LeaderElector
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Name: lease, Namespace: "default"},
			Client:     client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: os.Args[2]},
		},
		// The defaults of Kubernetes' own components are 15, 10 and 2 s; these are in the same proportion.
		LeaseDuration:   ttl,
		RenewDeadline:   ttl * 2 / 3,
		RetryPeriod:     ttl * 2 / 15,
		ReleaseOnCancel: true,
		Name:            lease,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(leads context.Context) { lead(leads, elector, lease, ask) },
			OnStoppedLeading: func() { fmt.Println("lost", now(), lease) },
		},
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
	elector.Run(over)
}

func lead(leads context.Context, elector *leaderelection.LeaderElector, lease string, ask time.Duration) {
	fmt.Println("led", now(), lease)
	for ask > 0 {
		at := now()
		if leads.Err() != nil || !elector.IsLeader() {
			return
		}
		fmt.Println("believes", at, lease)
		time.Sleep(ask)
	}
}

func now() int64 {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &now)
	return now.Nano()
}
