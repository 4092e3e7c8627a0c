// A processor of the genuine client with its default settings, until its standard input ends.
//
// node processor.js CONNECTION_STRING HUB STORAGE CONTAINER

const { EventHubConsumerClient } = require("@azure/event-hubs");
const { BlobCheckpointStore } = require("@azure/eventhubs-checkpointstore-blob");
const { ContainerClient } = require("@azure/storage-blob");

const [connectionString, hub, storage, container] = process.argv.slice(2);
const store = new BlobCheckpointStore(new ContainerClient(storage, container));
const consumer = new EventHubConsumerClient("$Default", connectionString, hub, store);
const subscription = consumer.subscribe({
  processEvents: async () => {},
  processError: async (error) => console.error(String(error)),
});

process.stdin.resume();
process.stdin.on("end", async () => {
  await subscription.close();
  await consumer.close();
});
