// A processor of the genuine client, until its standard input ends. It checkpoints after each batch.
//
// node processor.js CONNECTION_STRING HUB GROUP STORAGE CONTAINER [INTERVAL_MS EXPIRATION_MS]
//
// Prints lines of JSON: what it opened, handled, checkpointed and closed. Without times, the SDK's defaults hold.

const { EventHubConsumerClient, earliestEventPosition } = require("@azure/event-hubs");
const { BlobCheckpointStore } = require("@azure/eventhubs-checkpointstore-blob");
const { ContainerClient } = require("@azure/storage-blob");

const [connectionString, hub, group, storage, container, interval, expiration] = process.argv.slice(2);
const store = new BlobCheckpointStore(new ContainerClient(storage, container));
const loadBalancingOptions = interval && {
  strategy: "greedy",
  updateIntervalInMs: Number(interval),
  partitionOwnershipExpirationIntervalInMs: Number(expiration),
};
const consumer = new EventHubConsumerClient(group, connectionString, hub, store, { loadBalancingOptions });
const say = (line) => console.log(JSON.stringify(line));
const subscription = consumer.subscribe(
  {
    processInitialize: async (context) => say({ opened: context.partitionId }),
    processClose: async (reason, context) => say({ closed: context.partitionId }),
    processEvents: async (events, context) => {
      for (const event of events) {
        say({ handled: context.partitionId, sequence_number: event.sequenceNumber });
      }
      if (!events.length) return;
      const last = events[events.length - 1];
      await context.updateCheckpoint(last);
      say({ checkpointed: context.partitionId, sequence_number: last.sequenceNumber });
    },
    processError: async (error) => say({ failed: String(error) }),
  },
  { startPosition: earliestEventPosition, maxBatchSize: 100, maxWaitTimeInSeconds: 0.2 },
);

process.stdin.resume();
process.stdin.on("end", async () => {
  await subscription.close();
  await consumer.close();
  process.exit(); // The timer that renews the token of a stolen link would keep it.
});
