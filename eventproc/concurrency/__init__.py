"""Tasks, turns and the running loop: small helpers around asyncio."""
