// Ends Azurite with its parent and on SIGTERM, and lets its clients close idle connections. Node.js
// loads this file before Azurite itself.

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
