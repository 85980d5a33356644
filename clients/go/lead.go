package incumbent

import (
	"context"
	"errors"
	"math/rand"
	"slices"
	"time"
)

// Lead runs the work whenever this process leads, until the work returns while it still leads, or ctx is done. An error
// of the work is returned after the lease is freed. Losses and a sidecar that is away are not errors: this process
// stands again.
func (s *Sidecar) Lead(ctx context.Context, lease string, options Options, work func(*Hold) error) error {
	again := []string{"lost", "stopping", "too-many", "store", "held"}
	for {
		hold, err := s.Hold(ctx, lease, options)
		if err == nil {
			err = work(hold)
			done := hold.Held() || err != nil
			_ = hold.Release()
			if done {
				return err
			}
		}
		var problem *Problem
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.As(err, &problem) && !slices.Contains(again, problem.Code):
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Duration(100+rand.Intn(400)) * time.Millisecond):
		}
	}
}
