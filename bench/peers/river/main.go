// River's client on PostgreSQL. Its election isn't public, and its ttl of 15 s can't be set. What only a leader
// does and a program can see is to call the constructors of periodic jobs: each call is an answer of yes.
package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
	"golang.org/x/sys/unix"
)

// Between two calls of a constructor, without which nobody leads any more here.
const silence = 2 * time.Second

type nothing struct{}

func (nothing) Kind() string { return "nothing" }

type worker struct {
	river.WorkerDefaults[nothing]
}

func (worker) Work(context.Context, *river.Job[nothing]) error { return nil }

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
	url, name, lease := os.Args[1], os.Args[2], os.Args[3]
	ask, err := strconv.Atoi(os.Args[6])
	if err != nil {
		return fmt.Errorf("ASK_MS: %w", err)
	}
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return err
	}
	driver := riverpgxv5.New(pool)
	migrator, err := rivermigrate.New(driver, &rivermigrate.Config{Schema: lease, Logger: quiet()})
	if err != nil {
		return err
	}
	// One cluster of River's is one schema.
	if _, err = pool.Exec(ctx, `CREATE SCHEMA IF NOT EXISTS "`+lease+`"`); err != nil {
		return err
	}
	if _, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return err
	}
	workers := river.NewWorkers()
	river.AddWorker(workers, &worker{})
	told := &teller{lease: lease}
	every := 100 * time.Millisecond
	if ask > 0 {
		every = time.Duration(ask) * time.Millisecond
		told.asked = true
	}
	client, err := river.NewClient(driver, &river.Config{
		ID:      name,
		Logger:  quiet(),
		Queues:  map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 1}},
		Schema:  lease,
		Workers: workers,
		PeriodicJobs: []*river.PeriodicJob{river.NewPeriodicJob(
			river.PeriodicInterval(every),
			func() (river.JobArgs, *river.InsertOpts) { told.yes(); return nil, nil },
			&river.PeriodicJobOpts{RunOnStart: true},
		)},
	})
	if err != nil {
		return err
	}
	fmt.Println("begin", now())
	if err = client.Start(ctx); err != nil {
		return err
	}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM)
	<-ended
	return client.Stop(ctx)
}

// Tells of the first yes after a silence, of each if that is asked for, and of the last.
type teller struct {
	lease string
	asked bool
	mutex sync.Mutex
	last  *time.Timer
}

func (t *teller) yes() {
	at := now()
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.last == nil {
		fmt.Println("led", at, t.lease)
		t.last = time.AfterFunc(silence, func() {
			t.mutex.Lock()
			defer t.mutex.Unlock()
			t.last = nil
			fmt.Println("lost", at, t.lease)
		})
	}
	t.last.Reset(silence)
	if t.asked {
		fmt.Println("believes", at, t.lease)
	}
}

func now() int64 {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &now)
	return now.Nano()
}

func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }
