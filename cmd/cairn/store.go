package main

import (
	"cmp"
	"os"

	"cairn/internal/workspace"
)

// storeVariable names the store where --store does not.
const storeVariable = "CAIRN_STORE"

// useStore has a workspace keep its index in the store that --store or the
// environment names, if any. A configuration cannot: it lies in the repository
// it speaks about and must not open a socket.
func (a *app) useStore(o *workspace.Options) (err error) {
	address := cmp.Or(a.store, os.Getenv(storeVariable))
	if address == "" || address == "flat" {
		return nil
	}
	if o.Store, err = workspace.ParseStore(address, os.Getenv); err != nil {
		return &usageError{err}
	}
	// A server that does not index needs no folder of its own.
	o.Stateless = o.Warm && !o.Background
	return nil
}
