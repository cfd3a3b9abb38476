"""Pages of KV: pool, formats, content keys and reuse. Knows no model and no scheduling."""
