package sdk_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"

	"github.com/mcpx-go/mcpx/contract"
	"github.com/mcpx-go/mcpx/manifest"
	"github.com/mcpx-go/mcpx/sdk"
)

// A program starts a transaction, waits until it is closed or needs a human, and approves the rollback that it asks
// for. Run twice, it carries nothing out twice.
func Example() {
	ctx := context.Background()
	plans, err := manifest.Load("mcpx.yaml")
	if err != nil {
		log.Fatal(err)
	}
	mcpx, err := sdk.Dial(ctx, sdk.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer mcpx.Close()

	started, err := mcpx.Start(ctx, sdk.StartRequest{
		Plan: "provision-workspace", Input: json.RawMessage(`{"workspace": "acme"}`),
		Requester: "ops", Manifest: plans,
	})
	if err != nil {
		log.Fatal(err)
	}
	tx, err := mcpx.Wait(ctx, started.ID)
	if err != nil {
		log.Fatal(err)
	}
	if tx.State == contract.TxAwaitingCompensationApproval {
		judged, err := mcpx.Approve(ctx, started.ID, contract.Decision{By: "alice", Digest: tx.Undo.Digest})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(judged.Why)
		if tx, err = mcpx.Wait(ctx, started.ID); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println(started.How, tx.State)
}
