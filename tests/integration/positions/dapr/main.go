// Handles events with Dapr's component for publish and subscribe, until its standard input has a line;
// then it lets its partitions go, and ends when the input does.
//
// client CONNECTION_STRING HUB STORAGE CONTAINER
//
// It prints a line of JSON for each event. The component checkpoints each, after its handler returned.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"strconv"
	"strings"

	"github.com/dapr/components-contrib/metadata"
	"github.com/dapr/components-contrib/pubsub"
	"github.com/dapr/components-contrib/pubsub/azure/eventhubs"
	"github.com/dapr/kit/logger"
)

func main() {
	log := logger.NewLogger("client")
	log.SetOutput(os.Stderr)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	component := eventhubs.NewAzureEventHubs(log)
	properties := map[string]string{
		"connectionString":             os.Args[1],
		"consumerID":                   "$Default",
		"storageAccountName":           "devstoreaccount1", // Required, and ignored.
		"storageConnectionString":      os.Args[3],
		"storageContainerName":         os.Args[4],
		"enableInOrderMessageDelivery": "true",
		"getAllMessageProperties":      "true",
	}
	if err := component.Init(ctx, pubsub.Metadata{Base: metadata.Base{Properties: properties}}); err != nil {
		log.Fatal(err)
	}
	events := make(chan map[string]any)
	handle := func(_ context.Context, message *pubsub.NewMessage) error {
		number, err := strconv.ParseInt(message.Metadata["x-opt-sequence-number"], 10, 64)
		partition, _, _ := strings.Cut(string(message.Data), "/") // Dapr does not tell it.
		events <- map[string]any{"handled": partition, "sequence_number": number}
		return err
	}
	if err := component.Subscribe(ctx, pubsub.SubscribeRequest{Topic: os.Args[2]}, handle); err != nil {
		log.Fatal(err)
	}
	go func() {
		output := json.NewEncoder(os.Stdout)
		for event := range events {
			if err := output.Encode(event); err != nil {
				log.Fatal(err)
			}
		}
	}()
	for input := bufio.NewScanner(os.Stdin); input.Scan(); {
		cancel()
	}
}
