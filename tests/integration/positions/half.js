// Handles events with the genuine client, checkpoints each, and stops where it is told to.
//
// node half.js CONNECTION_STRING HUB STORAGE CONTAINER LAST PARTITIONS
//
// Ends when each of the partitions (0,1) was handled up to the sequence number LAST, and prints
// partition and sequence number of each event.

const { createRequire } = require("module");
const path = require("path");
const from = createRequire(path.join(__dirname, "../emulator/javascript/package.json"));
const { EventHubConsumerClient, earliestEventPosition } = from("@azure/event-hubs");
const { BlobCheckpointStore } = from("@azure/eventhubs-checkpointstore-blob");
const { ContainerClient } = from("@azure/storage-blob");

const [connectionString, hub, storage, container, last, partitions] = process.argv.slice(2);
const store = new BlobCheckpointStore(new ContainerClient(storage, container));
const options = { loadBalancingOptions: { strategy: "greedy", updateIntervalInMs: 500 } };
const consumer = new EventHubConsumerClient("$Default", connectionString, hub, store, options);
const handled = [];
const open = new Set(partitions.split(","));
let over;
const ended = new Promise((resolve) => (over = resolve));

const subscription = consumer.subscribe(
  {
    processEvents: async (events, context) => {
      for (const event of events) {
        if (event.sequenceNumber > Number(last)) break;
        handled.push([context.partitionId, event.sequenceNumber]);
        await context.updateCheckpoint(event);
        if (event.sequenceNumber === Number(last)) open.delete(context.partitionId);
      }
      if (!open.size) over();
    },
    processError: async (error) => console.error(String(error)),
  },
  { startPosition: earliestEventPosition, maxBatchSize: 1, maxWaitTimeInSeconds: 1 },
);

ended.then(async () => {
  await subscription.close();
  await consumer.close();
  console.log(JSON.stringify(handled));
});
