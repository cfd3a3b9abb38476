"""The database: tables, connections, migrations. Does not know what the rows mean to a user."""
