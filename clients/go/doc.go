// Package incumbent is the Go client of `incumbent serve`: leases and duties, with nothing but the standard library.
//
//	sidecar, err := incumbent.New("unix:/run/incumbent/incumbent.sock") // or "http://127.0.0.1:7070"
//	...
//	hold, err := sidecar.Hold(ctx, "scheduler", incumbent.Options{Name: "billing-1"}) // waits until this process leads
//	...
//	defer hold.Release()
//	for hold.Held() { // a memory read and a clock read
//		settleInvoices(hold.Context(), hold.Term())
//	}
package incumbent
