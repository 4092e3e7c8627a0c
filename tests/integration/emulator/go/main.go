// Azure's Go client, on request: one command of JSON a line on standard input, one answer of JSON a
// line on standard output. ../foreign_clients.py says which commands there are.
package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azeventhubs/v2"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azeventhubs/v2/checkpoints"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/coder/websocket"
)

type event struct {
	PartitionID    string         `json:"partition_id,omitempty"`
	Body           string         `json:"body"`
	Properties     map[string]any `json:"properties,omitempty"`
	MessageID      *string        `json:"message_id,omitempty"`
	CorrelationID  any            `json:"correlation_id,omitempty"`
	ContentType    *string        `json:"content_type,omitempty"`
	PartitionKey   *string        `json:"partition_key,omitempty"`
	SequenceNumber int64          `json:"sequence_number"`
	Offset         string         `json:"offset"`
}

type record struct {
	Namespace      string  `json:"namespace"`
	Hub            string  `json:"hub"`
	Group          string  `json:"group"`
	PartitionID    string  `json:"partition_id"`
	OwnerID        string  `json:"owner_id"`
	ETag           *string `json:"etag,omitempty"`
	Offset         *string `json:"offset,omitempty"`
	SequenceNumber *int64  `json:"sequence_number,omitempty"`
}

type command struct {
	Do             string   `json:"do"`
	Connection     string   `json:"connection"`
	Hub            string   `json:"hub"`
	Group          string   `json:"group"`
	Namespace      string   `json:"namespace"`
	Endpoint       string   `json:"endpoint"`
	CA             string   `json:"ca"`
	WebSocket      string   `json:"web_socket"`
	PartitionID    *string  `json:"partition_id"`
	PartitionKey   *string  `json:"partition_key"`
	Events         []event  `json:"events"`
	Receiver       string   `json:"receiver"`
	OwnerLevel     *int64   `json:"owner_level"`
	Offset         *string  `json:"offset"`
	SequenceNumber *int64   `json:"sequence_number"`
	EnqueuedMS     *int64   `json:"enqueued_ms"`
	IsLatest       bool     `json:"is_latest"`
	IsInclusive    bool     `json:"is_inclusive"`
	Count          int      `json:"count"`
	TimeoutS       float64  `json:"timeout_s"`
	Storage        string   `json:"storage"`
	Container      string   `json:"container"`
	Records        []record `json:"records"`
	Identifier     string   `json:"identifier"`
	IntervalS      float64  `json:"interval_s"`
	ExpirationS    float64  `json:"expiration_s"`
	Last           *int64   `json:"last"`
}

// Lines of a processor, too, come from goroutines of its own.
var output struct {
	sync.Mutex
	encoder *json.Encoder
}

func say(line map[string]any) {
	output.Lock()
	defer output.Unlock()
	if err := output.encoder.Encode(line); err != nil {
		os.Exit(1)
	}
}

type client struct {
	producer  *azeventhubs.ProducerClient
	consumer  *azeventhubs.ConsumerClient
	receivers map[string]*azeventhubs.PartitionClient
	stop      func()
}

func (c *client) connect(given command) error {
	retries := azeventhubs.RetryOptions{MaxRetries: 1, RetryDelay: 100 * time.Millisecond}
	var encryption *tls.Config
	if given.CA != "" {
		pem, err := os.ReadFile(given.CA)
		if err != nil {
			return err
		}
		encryption = &tls.Config{RootCAs: x509.NewCertPool()}
		encryption.RootCAs.AppendCertsFromPEM(pem)
	}
	var overWebSocket func(context.Context, azeventhubs.WebSocketConnParams) (net.Conn, error)
	if given.WebSocket != "" {
		overWebSocket = func(ctx context.Context, _ azeventhubs.WebSocketConnParams) (net.Conn, error) {
			opened, _, err := websocket.Dial(ctx, given.WebSocket, &websocket.DialOptions{Subprotocols: []string{"amqp"}})
			if err != nil {
				return nil, err
			}
			return websocket.NetConn(context.Background(), opened, websocket.MessageBinary), nil
		}
	}
	var err error
	c.producer, err = azeventhubs.NewProducerClientFromConnectionString(given.Connection, given.Hub, &azeventhubs.ProducerClientOptions{
		CustomEndpoint: given.Endpoint, TLSConfig: encryption, NewWebSocketConn: overWebSocket, RetryOptions: retries,
	})
	if err != nil {
		return err
	}
	c.consumer, err = azeventhubs.NewConsumerClientFromConnectionString(given.Connection, given.Hub, given.Group, &azeventhubs.ConsumerClientOptions{
		CustomEndpoint: given.Endpoint, TLSConfig: encryption, NewWebSocketConn: overWebSocket, RetryOptions: retries,
		InstanceID: given.Identifier,
	})
	return err
}

func (c *client) disconnect(ctx context.Context) {
	if c.stop != nil {
		c.stop()
		c.stop = nil
	}
	for name, receiver := range c.receivers {
		_ = receiver.Close(ctx)
		delete(c.receivers, name)
	}
	if c.consumer != nil {
		_ = c.consumer.Close(ctx)
	}
	if c.producer != nil {
		_ = c.producer.Close(ctx)
	}
	c.consumer, c.producer = nil, nil
}

func (c *client) send(ctx context.Context, given command) (int, error) {
	options := &azeventhubs.EventDataBatchOptions{PartitionID: given.PartitionID, PartitionKey: given.PartitionKey}
	batch, err := c.producer.NewEventDataBatch(ctx, options)
	if err != nil {
		return 0, err
	}
	for _, one := range given.Events {
		err = batch.AddEventData(&azeventhubs.EventData{
			Body: []byte(one.Body), Properties: one.Properties, MessageID: one.MessageID,
			CorrelationID: one.CorrelationID, ContentType: one.ContentType,
		}, nil)
		if err != nil {
			return 0, err
		}
	}
	return int(batch.NumEvents()), c.producer.SendEventDataBatch(ctx, batch, nil)
}

func startOf(given command) azeventhubs.StartPosition {
	yes := true
	start := azeventhubs.StartPosition{Inclusive: given.IsInclusive, Offset: given.Offset, SequenceNumber: given.SequenceNumber}
	if given.EnqueuedMS != nil {
		at := time.UnixMilli(*given.EnqueuedMS)
		start.EnqueuedTime = &at
	} else if given.IsLatest {
		start.Latest = &yes
	} else if given.Offset == nil && given.SequenceNumber == nil {
		start.Earliest = &yes
	}
	return start
}

func (c *client) receive(ctx context.Context, given command) ([]event, error) {
	receiver := c.receivers[given.Receiver]
	if receiver == nil {
		var err error
		receiver, err = c.consumer.NewPartitionClient(*given.PartitionID, &azeventhubs.PartitionClientOptions{
			StartPosition: startOf(given), OwnerLevel: given.OwnerLevel,
		})
		if err != nil {
			return nil, err
		}
		c.receivers[given.Receiver] = receiver
	}
	ctx, cancel := context.WithTimeout(ctx, time.Duration(given.TimeoutS*float64(time.Second)))
	defer cancel()
	received := []event{}
	for len(received) < given.Count {
		some, err := receiver.ReceiveEvents(ctx, given.Count-len(received), nil)
		for _, one := range some {
			received = append(received, event{
				Body: string(one.Body), Properties: one.Properties, MessageID: one.MessageID, CorrelationID: one.CorrelationID,
				ContentType: one.ContentType, PartitionKey: one.PartitionKey, SequenceNumber: one.SequenceNumber, Offset: one.Offset,
			})
		}
		if errors.Is(err, context.DeadlineExceeded) {
			break
		}
		if err != nil {
			return received, err
		}
	}
	return received, nil
}

func storeOf(given command) (*checkpoints.BlobStore, error) {
	blobs, err := container.NewClientFromConnectionString(given.Storage, given.Container, nil)
	if err != nil {
		return nil, err
	}
	return checkpoints.NewBlobStore(blobs, nil)
}

func (c *client) claim(ctx context.Context, given command) ([]record, error) {
	store, err := storeOf(given)
	if err != nil {
		return nil, err
	}
	claims := []azeventhubs.Ownership{}
	for _, one := range given.Records {
		claims = append(claims, azeventhubs.Ownership{
			FullyQualifiedNamespace: one.Namespace, EventHubName: one.Hub, ConsumerGroup: one.Group,
			PartitionID: one.PartitionID, OwnerID: one.OwnerID, ETag: (*azcore.ETag)(one.ETag),
		})
	}
	claimed, err := store.ClaimOwnership(ctx, claims, nil)
	return recordsOf(claimed), err
}

func recordsOf(ownerships []azeventhubs.Ownership) []record {
	records := []record{}
	for _, one := range ownerships {
		records = append(records, record{
			Namespace: one.FullyQualifiedNamespace, Hub: one.EventHubName, Group: one.ConsumerGroup,
			PartitionID: one.PartitionID, OwnerID: one.OwnerID, ETag: (*string)(one.ETag),
		})
	}
	return records
}

func (c *client) ownerships(ctx context.Context, given command) ([]record, error) {
	store, err := storeOf(given)
	if err != nil {
		return nil, err
	}
	listed, err := store.ListOwnership(ctx, given.Namespace, given.Hub, given.Group, nil)
	return recordsOf(listed), err
}

func (c *client) checkpoint(ctx context.Context, given command) (any, error) {
	store, err := storeOf(given)
	if err != nil {
		return nil, err
	}
	for _, one := range given.Records {
		err = store.SetCheckpoint(ctx, azeventhubs.Checkpoint{
			FullyQualifiedNamespace: one.Namespace, EventHubName: one.Hub, ConsumerGroup: one.Group,
			PartitionID: one.PartitionID, Offset: one.Offset, SequenceNumber: one.SequenceNumber,
		}, nil)
		if err != nil {
			return nil, err
		}
	}
	return len(given.Records), nil
}

func (c *client) checkpoints(ctx context.Context, given command) ([]record, error) {
	store, err := storeOf(given)
	if err != nil {
		return nil, err
	}
	records := []record{}
	listed, err := store.ListCheckpoints(ctx, given.Namespace, given.Hub, given.Group, nil)
	for _, one := range listed {
		records = append(records, record{
			Namespace: one.FullyQualifiedNamespace, Hub: one.EventHubName, Group: one.ConsumerGroup,
			PartitionID: one.PartitionID, Offset: one.Offset, SequenceNumber: one.SequenceNumber,
		})
	}
	return records, err
}

// process starts a processor that checkpoints after each batch; without an interval it has the SDK's defaults.
func (c *client) process(given command) error {
	store, err := storeOf(given)
	if err != nil {
		return err
	}
	earliest := true
	options := azeventhubs.ProcessorOptions{
		StartPositions: azeventhubs.StartPositions{Default: azeventhubs.StartPosition{Earliest: &earliest}},
	}
	if given.IntervalS > 0 {
		options.LoadBalancingStrategy = azeventhubs.ProcessorStrategyGreedy
		options.UpdateInterval = time.Duration(given.IntervalS * float64(time.Second))
		options.PartitionExpirationDuration = time.Duration(given.ExpirationS * float64(time.Second))
	}
	processor, err := azeventhubs.NewProcessor(c.consumer, store, &options)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Add(2)
	go func() {
		defer running.Done()
		if err := processor.Run(ctx); err != nil && ctx.Err() == nil {
			say(map[string]any{"failed": err.Error()})
		}
	}()
	go func() {
		defer running.Done()
		for {
			partition := processor.NextPartitionClient(ctx)
			if partition == nil {
				return
			}
			running.Add(1)
			go func() {
				defer running.Done()
				handle(ctx, partition, given.Last)
			}()
		}
	}()
	c.stop = func() { cancel(); running.Wait() }
	return nil
}

func handle(ctx context.Context, partition *azeventhubs.ProcessorPartitionClient, last *int64) {
	defer func() { _ = partition.Close(context.Background()) }()
	say(map[string]any{"opened": partition.PartitionID()})
	defer say(map[string]any{"closed": partition.PartitionID()})
	for {
		wait, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
		received, err := partition.ReceiveEvents(wait, 100, nil)
		cancel()
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			return
		}
		for last != nil && len(received) > 0 && received[len(received)-1].SequenceNumber > *last {
			received = received[:len(received)-1]
		}
		for _, one := range received {
			say(map[string]any{"handled": partition.PartitionID(), "sequence_number": one.SequenceNumber})
		}
		if len(received) == 0 {
			continue
		}
		// Of a batch that was handled, also when the processor stops meanwhile.
		last := received[len(received)-1]
		if partition.UpdateCheckpoint(context.Background(), last, nil) != nil {
			return
		}
		say(map[string]any{"checkpointed": partition.PartitionID(), "sequence_number": last.SequenceNumber})
	}
}

func (c *client) carryOut(given command) (any, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	switch given.Do {
	case "connect":
		c.disconnect(ctx)
		return "connected", c.connect(given)
	case "hub":
		found, err := c.consumer.GetEventHubProperties(ctx, nil)
		return map[string]any{"name": found.Name, "partition_ids": found.PartitionIDs, "created_ms": found.CreatedOn.UnixMilli()}, err
	case "partition":
		found, err := c.consumer.GetPartitionProperties(ctx, *given.PartitionID, nil)
		return map[string]any{
			"partition_id": found.PartitionID, "is_empty": found.IsEmpty, "beginning_sequence_number": found.BeginningSequenceNumber,
			"last_sequence_number": found.LastEnqueuedSequenceNumber, "last_offset": found.LastEnqueuedOffset,
		}, err
	case "send":
		return c.send(ctx, given)
	case "receive":
		return c.receive(ctx, given)
	case "close":
		receiver := c.receivers[given.Receiver]
		delete(c.receivers, given.Receiver)
		return "closed", receiver.Close(ctx)
	case "claim":
		return c.claim(ctx, given)
	case "ownerships":
		return c.ownerships(ctx, given)
	case "checkpoint":
		return c.checkpoint(ctx, given)
	case "checkpoints":
		return c.checkpoints(ctx, given)
	case "process":
		return "processing", c.process(given)
	case "stop":
		c.stop()
		c.stop = nil
		return "stopped", nil
	}
	return nil, fmt.Errorf("unknown command %q", given.Do)
}

func main() {
	output.encoder = json.NewEncoder(os.Stdout)
	own := &client{receivers: map[string]*azeventhubs.PartitionClient{}}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var given command
		if err := json.Unmarshal(lines.Bytes(), &given); err != nil {
			say(map[string]any{"error": err.Error()})
			continue
		}
		answer, err := own.carryOut(given)
		if err != nil {
			line := map[string]any{"error": err.Error()}
			var known *azeventhubs.Error
			if errors.As(err, &known) {
				line["code"] = string(known.Code)
			}
			say(line)
		} else {
			say(map[string]any{"answer": answer})
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	own.disconnect(ctx)
}
