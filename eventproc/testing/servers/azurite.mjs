// Ends Azurite with its parent and on SIGTERM. Node.js loads this file before Azurite itself.

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
