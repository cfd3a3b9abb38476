"""What goes in and out of the REST API, as pydantic models built from the travelling types."""
