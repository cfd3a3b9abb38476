"""Use cases of Fineprint: ingest, ask, answer checks, REST API, database, command line."""
