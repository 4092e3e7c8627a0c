// KEDA's own client of an external scaler, as its operator uses it. It carries out calls, one a line
// of JSON on standard input: {"call": NAME, "metadata": {...}}, and answers each by a line
// {"answer": MESSAGE} or {"error": TEXT, "code": CODE}. StreamIsActive waits for the next message.
package main

import (
	"context"
	"encoding/json"
	"log"
	"os"
	"time"

	pb "github.com/kedacore/keda/v2/pkg/scalers/externalscaler"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

const answerMax = 30 * time.Second

type request struct {
	Call     string
	Metadata map[string]string
}

type operator struct {
	client pb.ExternalScalerClient
	stream pb.ExternalScaler_StreamIsActiveClient
}

func (o *operator) ask(asked request) (answer any, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), answerMax)
	defer cancel()
	object := &pb.ScaledObjectRef{Name: "orders", Namespace: "default", ScalerMetadata: asked.Metadata}
	switch asked.Call {
	case "IsActive":
		return o.client.IsActive(ctx, object)
	case "GetMetricSpec":
		return o.client.GetMetricSpec(ctx, object)
	case "GetMetrics":
		return o.client.GetMetrics(ctx, &pb.GetMetricsRequest{
			ScaledObjectRef: object, MetricName: "eventproc-replicas",
		})
	}
	if o.stream == nil {
		if o.stream, err = o.client.StreamIsActive(context.Background(), object); err != nil {
			return nil, err
		}
	}
	return o.stream.Recv()
}

func main() {
	insecurely := grpc.WithTransportCredentials(insecure.NewCredentials())
	connection, err := grpc.NewClient(os.Args[1], insecurely)
	if err != nil {
		log.Fatal(err)
	}
	keda := &operator{client: pb.NewExternalScalerClient(connection)}
	requests, answers := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var asked request
		if requests.Decode(&asked) != nil {
			return
		}
		answer, err := keda.ask(asked)
		if err != nil {
			answers.Encode(map[string]any{"error": err.Error(), "code": status.Code(err).String()})
			continue
		}
		answers.Encode(map[string]any{"answer": answer})
	}
}
