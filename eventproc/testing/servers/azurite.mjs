// How Azurite behaves when it, or we, must go. Node.js loads this file before Azurite itself.

// Our end of this pipe closes when we die, in whichever way: then nobody needs Azurite any more.
process.stdin.on("end", () => process.exit()).resume();
process.stdin.unref();

// Azurite answers requests before it listens to SIGTERM, and one that comes so early would end it
// without saving. Hold it back until somebody else listens.
process.on("SIGTERM", () => {
  if (process.listenerCount("SIGTERM") === 1) {
    setTimeout(() => process.emit("SIGTERM"), 5).unref();
  }
});
