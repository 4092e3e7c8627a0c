"""What everything above may use: settings, logs, tasks and threads, HTTP, identity, retries."""
