"""The page: server-rendered, no build step, nothing loaded from elsewhere."""
