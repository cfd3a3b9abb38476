"""One module per resource; each has a `router` whose routes carry their whole path."""

API_PREFIX = "/api/v1"
