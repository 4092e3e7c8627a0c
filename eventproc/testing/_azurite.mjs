// Ends Azurite with its parent and on SIGTERM, lets its clients close idle connections, and makes its
// garbage collection fast. Node.js loads this file before Azurite itself.

import { realpathSync } from "node:fs";
import { createRequire } from "node:module";
import { Server } from "node:net";

// The parent's end of this pipe closes however the parent ends; Azurite then has no user left.
process.stdin.on("end", () => process.exit()).resume();
process.stdin.unref();

// Azurite answers requests before it listens to SIGTERM, and one that comes so early would end it
// without saving. Hold it back until Azurite has installed its own handler.
process.on("SIGTERM", () => {
  if (process.listenerCount("SIGTERM") === 1) {
    setTimeout(() => process.emit("SIGTERM"), 5).unref();
  }
});

// Node.js closes a connection after five idle seconds, while a client may just be sending its next
// request, and then no one knows whether a write took effect. aiohttp gives up a connection after 15
// seconds: longer than that, the server never is the first. (Azurite's own option has no effect.)
const { listen } = Server.prototype;
Server.prototype.listen = function (...args) {
  this.keepAliveTimeout = 60_000;
  return listen.apply(this, args);
};

// Every ten minutes Azurite removes the content of overwritten blobs. It sorts its whole index again
// for each one, and with 10,000 of them in memory it answers nothing for more than a minute. Another
// method of its database removes one without that.
try {
  const require = createRequire(realpathSync(process.argv[1]));
  const extents = require("azurite/dist/src/common/persistence/LokiExtentMetadataStore.js").default;
  extents.prototype.deleteExtent = async function (id) {
    const collection = this.db.getCollection(this.EXTENTS_COLLECTION);
    const extent = collection.findOne({ id });
    if (extent !== null) collection.remove(extent);
  };
} catch {
  // Another version of Azurite, or another program: it stays as it is.
}
